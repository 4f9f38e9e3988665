// The policy in an editor: what is wrong stands at its line while one types, what the edit means beside it.
import { withKeys } from "./policy_keys.js";
import { post, styleNonce } from "./console.js";

// the page is there before the editor, in whose place the plain field is until then
const { EditorState, EditorView, basicSetup, classHighlighter, lintGutter, setDiagnostics, syntaxHighlighting, yaml } = await import("./vendor/codemirror.js");

const PAUSE_MS = 500;
const area = document.querySelector("#text");
const judgement = document.querySelector("#judgement");
const editor = new EditorView({
  state: EditorState.create({
    doc: area.value,
    extensions: [
      basicSetup, syntaxHighlighting(classHighlighter), withKeys(yaml()), lintGutter(), EditorView.cspNonce.of(styleNonce),
      EditorView.contentAttributes.of({ "aria-label": "The policy file" }),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        area.value = editor.state.doc.toString();
        clearTimeout(timer);
        timer = setTimeout(judge, PAUSE_MS);
      }),
    ],
  }),
});
const box = document.createElement("div");
box.className = "editor tall";
box.append(editor.dom);
area.after(box);
editor.scrollDOM.tabIndex = 0; // it scrolls by the keyboard too
if (document.activeElement === area) editor.focus();
area.hidden = true;

let timer, asked;
async function judge() {
  asked?.abort();
  asked = new AbortController();
  try {
    judgement.innerHTML = await post("/policy/check", { text: area.value }, asked.signal); // escaped by the server
  } catch (error) {
    if (error.name !== "AbortError") judgement.textContent = "The proxy does not answer.";
    return;
  }
  const faults = [...judgement.querySelectorAll("[data-line]")].map((item) => {
    const line = editor.state.doc.line(Math.min(Math.max(1, Number(item.dataset.line)), editor.state.doc.lines));
    return { from: line.from, to: line.to, severity: "error", message: item.querySelector("span").textContent };
  });
  editor.dispatch(setDiagnostics(editor.state, faults));
  document.querySelector("#apply").disabled = faults.length > 0;
}
judge();
