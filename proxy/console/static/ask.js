// The editor, the forecast as one types, and Run.
import { post, styleNonce } from "./console.js";
import "./answer.js";

// the page is there before the editor, in whose place the plain field is until then
const { EditorState, EditorView, Prec, PostgreSQL, basicSetup, classHighlighter, keymap, sql, syntaxHighlighting, syntaxTree } = await import("./vendor/codemirror.js");

const PAUSE_MS = 400;
const form = document.querySelector("#question");
const area = document.querySelector("#statement");
const forecast = document.querySelector("#forecast");
const epsilon = document.querySelector("#epsilon");
const slide = document.querySelector("#slide");
const { schema, settings, values, functions } = JSON.parse(area.dataset.completion);

const isIn = (context, ...kinds) => kinds.includes(wholeTree(context.state).resolveInner(context.pos, -1).name);
const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : []);
const options = (labels, type) => labels.map((label) => ({ label, type }));

function completeSettings(context) {
  const word = context.matchBefore(/\b(?:SET|SHOW)\s+[\w.]*$/i);
  if (!word) return null;
  return { from: word.from + word.text.search(/[\w.]*$/), options: options(Object.keys(settings), "property") };
}
function completeSettingValues(context) {
  const word = context.matchBefore(/\bSET\s+(?:SESSION\s+|LOCAL\s+)?[\w.]+(?:\s*=\s*|\s+TO\s+)'?[\w.]*$/i);
  const name = word?.text.match(/\bSET\s+(?:SESSION\s+|LOCAL\s+)?([\w.]+)/i)[1].toLowerCase();
  return word ? proposed(context, word.from + word.text.search(/'?[\w.]*$/), own(settings, name)) : null;
}
/** Values that the policy lists for a column, after a comparison with it. */
function completeValues(context) {
  const word = context.matchBefore(/(?:\w+|"[^"]+")\s*(?:=|<>|!=|\s(?:NOT\s+)?IN\s*\((?:[^()]*,)?)\s*(?:'[^']*|[\w.]*)$/i);
  if (!word) return null;
  const column = word.text.match(/^(?:(\w+)|"([^"]+)")/);
  const of = own(values, column[2] ?? column[1].toLowerCase());
  const text = context.state.doc.toString();
  const named = Object.keys(of).filter((table) => text.includes(table)); // columns of one name may list other values
  const found = [...new Set((named.length ? named : Object.keys(of)).flatMap((table) => of[table]))];
  return proposed(context, word.from + word.text.search(/(?:'[^']*|[\w.]*)$/), found);
}
/** Those that begin as what is typed, before all keywords: the editor itself would sort them after these. */
function proposed(context, from, labels) {
  const typed = context.state.sliceDoc(from, context.pos);
  const isClosed = typed.startsWith("'") && context.state.sliceDoc(context.pos, context.pos + 1) === "'";
  const plain = (text) => text.replace(/^'/, "").toLowerCase();
  const found = labels.filter((label) => plain(label).startsWith(plain(typed)));
  return { from, to: context.pos + (isClosed ? 1 : 0), options: options(found, "constant"), filter: false };
}
function completeFunctions(context) {
  const word = context.matchBefore(/[\w.]+$/);
  if ((!word && !context.explicit) || isIn(context, "String", "LineComment", "BlockComment", "QuotedIdentifier")) return null;
  return { from: word ? word.from : context.pos, options: functions.map((label) => ({ label, type: "function" })) };
}

const language = sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true });
const editor = new EditorView({
  state: EditorState.create({
    doc: area.value,
    extensions: [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (form.requestSubmit(), true) }])),
      basicSetup, syntaxHighlighting(classHighlighter), EditorView.lineWrapping, EditorView.cspNonce.of(styleNonce), language,
      ...[completeSettings, completeSettingValues, completeValues, completeFunctions].map((autocomplete) => language.language.data.of({ autocomplete })),
      EditorView.contentAttributes.of({ "aria-label": "Statement" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged || update.selectionSet) later();
      }),
    ],
  }),
});
const box = document.createElement("div");
box.className = "editor";
box.append(editor.dom);
area.after(box);
editor.scrollDOM.tabIndex = 0; // it scrolls by the keyboard too
if (document.activeElement === area) editor.focus();
area.hidden = true;

/** The statement that the cursor is in, or the one before it. */
function statement() {
  const at = editor.state.selection.main.head;
  const whole = [];
  wholeTree(editor.state).topNode.getChildren("Statement").forEach((node) => whole.push(node));
  const found = whole.find((node) => node.from <= at && at <= node.to) ?? whole.filter((node) => node.to <= at).pop() ?? whole[0];
  const text = found ? editor.state.sliceDoc(found.from, found.to) : editor.state.doc.toString();
  return text.replace(/;\s*$/, "");
}

function write(text) {
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text }, selection: { anchor: text.length } });
  editor.focus();
}

let timer, asked, known;
function later() {
  clearTimeout(timer);
  timer = setTimeout(foresee, PAUSE_MS);
}
async function foresee() {
  const fields = { statement: statement(), epsilon: epsilon.value };
  const key = JSON.stringify(fields);
  if (!fields.statement.trim() || key === known) return;
  known = key;
  asked?.abort();
  asked = new AbortController();
  try {
    const html = await post("/ask/forecast", fields, asked.signal);
    if (key === known) forecast.innerHTML = html; // written by the server, which escapes what others named
  } catch (error) {
    if (error.name === "AbortError") return;
    known = undefined; // so that the same question is tried again
    forecast.textContent = "No forecast: the proxy does not answer.";
  }
}

slide.value = Math.log10(Number(epsilon.value) || 1);
slide.addEventListener("input", () => {
  epsilon.value = Number(Math.pow(10, Number(slide.value)).toPrecision(2));
  later();
});
epsilon.addEventListener("input", () => {
  slide.value = Math.log10(Number(epsilon.value) || 1);
  later();
});

for (const sent of [form, document.querySelector("#keep")]) {
  sent.addEventListener("htmx:configRequest", (event) => event.detail.parameters.set("statement", statement()));
}
form.addEventListener("htmx:afterRequest", () => {
  known = undefined;
  later();
});
let cancelling;
document.querySelector("#cancel").addEventListener("click", () => {
  const cancel = () => post("/ask/cancel", {});
  clearInterval(cancelling);
  cancelling = setInterval(cancel, 1000); // one that comes before the statement has begun ends nothing
  cancel();
});
form.addEventListener("htmx:afterRequest", () => clearInterval(cancelling));

document.addEventListener("click", (event) => {
  const proposal = event.target.closest("[data-statement]");
  if (proposal) write(proposal.dataset.statement);
  if (proposal && "run" in proposal.dataset) form.requestSubmit();
});

if (area.value.trim()) later();

// The editor parses in the background: of a text that is long, or on a machine that is busy, its tree may end early, and
// a statement that was cut there must never be sent.
function wholeTree(state) {
  const tree = syntaxTree(state);
  return tree.length >= state.doc.length ? tree : PostgreSQL.language.parser.parse(state.doc.toString());
}
