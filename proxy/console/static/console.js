// What all pages do: our requests carry the token, and buttons beside them work from the keyboard as from the mouse.
export const csrf = document.querySelector('meta[name="csrf"]').content;

document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = csrf;
});
// A refusal is a part of the page too.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status >= 400 && event.detail.xhr.status !== 401) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});
document.addEventListener("htmx:sendError", (event) => {
  event.detail.target.textContent = "The proxy does not answer.";
});

/** Send fields to one of our own addresses; the answer's text. */
export async function post(path, fields, signal) {
  const answer = await fetch(path, {
    method: "POST", body: new URLSearchParams(fields), headers: { "X-CSRF-Token": csrf }, signal,
  });
  if (answer.status === 401) location.assign("/login");
  return answer.text();
}

/** Give a text to the person as a file. */
export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The nonce that the editor's style sheet must carry. */
export const styleNonce = document.querySelector('meta[name="style-nonce"]').content;

// A button that ends what another element has asked for.
document.addEventListener("click", (event) => {
  const asking = event.target.closest?.("[data-abort]")?.dataset.abort;
  if (asking) htmx.trigger(asking, "htmx:abort");
});

// A form whose answer is another page says meanwhile that it is on its way.
document.addEventListener("submit", (event) => {
  const { progress } = event.target.dataset;
  if (progress) document.querySelector(progress).classList.add("htmx-request");
});
