// What an answer can become: chart, CSV, picture. For every answer that a page receives.
import { download } from "./console.js";
import { named } from "./fields.js";
import { choosable } from "./grid.js";

function dress(answer) {
  const data = JSON.parse(answer.dataset.answer);
  const kind = answer.querySelector(".kind");
  if (!kind) return;
  const measure = answer.querySelector(".measure");
  const figure = answer.querySelector(".chart");
  const [svg, png] = [answer.querySelector(".svg"), answer.querySelector(".png")];
  for (const column of data.columns.filter((c) => c.number)) measure.add(new Option(column.name, column.at));
  kind.disabled = measure.options.length === 0;
  const show = (isChart) => {
    figure.hidden = svg.hidden = png.hidden = !isChart;
  };
  const draw = async () => {
    if (kind.value === "table") return show(false);
    const { drawn } = await import("./chart.js"); // nobody waits for charts who sees none
    if (kind.value === "table") return; // changed meanwhile
    figure.replaceChildren(drawn(data, kind.value, Number(measure.value)));
    show(true);
  };
  choosable(answer.querySelector("table"), answer.querySelector(".copy"), answer.querySelector(".copied"), data);
  kind.addEventListener("change", draw);
  measure.addEventListener("change", draw);
  answer.querySelector(".csv").addEventListener("click", () => download("answer.csv", new Blob([named(data, ",")], { type: "text/csv" })));
  svg.addEventListener("click", () => download("answer.svg", picture(figure)));
  png.addEventListener("click", async () => download("answer.png", await pixels(figure)));
}
function picture(figure) {
  const copy = figure.querySelector("svg").cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("color", "black");
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}
async function pixels(figure) {
  const image = new Image();
  image.src = URL.createObjectURL(picture(figure));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
document.addEventListener("htmx:afterSwap", (event) => {
  event.target.querySelectorAll("[data-answer]").forEach(dress);
});
