// What the console uses of CodeMirror, as one module.
export { EditorState, Compartment, Prec } from "@codemirror/state";
export { EditorView, keymap, placeholder } from "@codemirror/view";
export { basicSetup } from "codemirror";
export { indentWithTab } from "@codemirror/commands";
export { sql, PostgreSQL, schemaCompletionSource, keywordCompletionSource } from "@codemirror/lang-sql";
export { yaml } from "@codemirror/lang-yaml";
export { syntaxHighlighting, syntaxTree } from "@codemirror/language";
export { classHighlighter } from "@lezer/highlight";
export { autocompletion } from "@codemirror/autocomplete";
export { linter, lintGutter, setDiagnostics } from "@codemirror/lint";
