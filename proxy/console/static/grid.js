// Cells and rows of an answer's table, chosen by keyboard or mouse and copied as text. Values are the answer's own, never the page's.
import { fields, named } from "./fields.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] };

/** Make the table one that cells are chosen in. told: where it is said what was copied. */
export function choosable(table, button, told, data) {
  const rows = [...table.tBodies[0].rows];
  // a column of the page: the places of its values in a row of the answer
  const shown = data.columns.flatMap((c) => [{ at: [c.at], number: c.number }, ...(c.interval ? [{ at: c.interval, number: true }] : [])]);
  let [from, to] = [null, null];
  table.setAttribute("role", "grid");
  table.setAttribute("aria-multiselectable", "true");
  table.setAttribute("aria-label", "Answer");
  for (const cell of rows.flatMap((row) => [...row.cells])) {
    cell.setAttribute("role", "gridcell");
    cell.tabIndex = -1;
  }
  if (rows.length) rows[0].cells[0].tabIndex = 0;

  const chosen = () => {
    const [top, bottom] = [from[0], to[0]].sort((a, b) => a - b);
    const [left, right] = [from[1], to[1]].sort((a, b) => a - b);
    return { top, bottom, left, right };
  };
  function choose(first, last, focused = last) {
    table.querySelectorAll("[aria-selected]").forEach((cell) => cell.removeAttribute("aria-selected"));
    table.querySelector("[tabindex='0']").tabIndex = -1;
    [from, to] = [first, last];
    const { top, bottom, left, right } = chosen();
    for (const row of rows.slice(top, bottom + 1)) {
      for (const cell of [...row.cells].slice(left, right + 1)) cell.setAttribute("aria-selected", "true");
    }
    const cell = rows[focused[0]].cells[focused[1]];
    cell.tabIndex = 0;
    cell.focus();
    getSelection().removeAllRanges();
  }
  /** What is copied, and in words how much. One cell is its text as it is; more are lines of fields with tabs between. */
  function copied() {
    if (!from) return [named(data, "\t"), `${data.rows.length} rows with the names of their columns`];
    const { top, bottom, left, right } = chosen();
    if (top === bottom && left === right) {
      const values = shown[left].at.map((i) => data.rows[top][i]);
      return [values.includes(null) ? "" : values.join(" to "), "one cell"];
    }
    const places = shown.slice(left, right + 1).flatMap((c) => c.at.map((i) => ({ i, number: c.number })));
    const lines = data.rows.slice(top, bottom + 1).map((row) => places.map(({ i }) => row[i]));
    return [fields(lines, (i) => places[i].number, "\t"), `${bottom - top + 1} by ${right - left + 1} cells`];
  }

  const placeOf = (event) => {
    const cell = event.target.closest("td");
    return cell && [rows.indexOf(cell.parentElement), cell.cellIndex];
  };
  table.addEventListener("mousedown", (event) => {
    if (event.shiftKey && from && placeOf(event)) event.preventDefault(); // no selection of text from there to here
  });
  table.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place && getSelection().isCollapsed) choose(event.shiftKey && from ? from : place, place);
  });
  table.addEventListener("keydown", (event) => {
    const place = placeOf(event);
    if (!place || event.altKey) return;
    const [row, column] = place;
    const [lastRow, lastColumn] = [rows.length - 1, shown.length - 1];
    const isControl = event.ctrlKey || event.metaKey;
    if (event.key === " " && event.shiftKey) choose([row, 0], [row, lastColumn], place);
    else if (event.key.toLowerCase() === "a" && isControl) choose([0, 0], [lastRow, lastColumn], place);
    else if (event.key in MOVES) {
      const [down, right] = isControl ? MOVES[event.key].map((step) => Math.sign(step) * Infinity || 0) : MOVES[event.key];
      const within = (value, last) => Math.min(Math.max(value, 0), last);
      const next = [within(row + down, lastRow), within(column + right, lastColumn)];
      choose(event.shiftKey && from ? from : next, next);
    } else return;
    event.preventDefault();
  });
  table.addEventListener("copy", (event) => {
    if (!from || !getSelection().isCollapsed) return; // a piece of text, chosen with the mouse
    const [text, words] = copied();
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
    told.textContent = `copied ${words}`;
  });
  button.addEventListener("click", async () => {
    const [text, words] = copied();
    try {
      await navigator.clipboard.writeText(text);
      told.textContent = `copied ${words}`;
    } catch {
      told.textContent = "the browser does not let this page copy";
    }
  });
}
