// The steps' answers become charts and downloads; a proposed statement opens on the page where one asks.
import "./answer.js";
import { csrf } from "./console.js";

document.addEventListener("click", (event) => {
  const proposal = event.target.closest("[data-statement]");
  if (!proposal) return;
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: "/ask" });
  for (const [name, value] of Object.entries({ csrf, statement: proposal.dataset.statement })) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    form.append(field);
  }
  document.body.append(form);
  form.submit();
});
