// Values as lines of fields, for files and for the clipboard.

/** One field. A text that a spreadsheet would take for a formula is made a text; NULL is nothing. */
function field(value, isNumber, between) {
  if (value === null) return "";
  const text = !isNumber && /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return text.includes(between) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** lines: of values. isNumber: of which places values are numbers. between: what stands between two fields. */
export function fields(lines, isNumber, between) {
  return lines.map((line) => line.map((value, i) => field(value, isNumber(i), between)).join(between) + "\r\n").join("");
}

/** All of an answer, with the names of its columns. */
export function named({ names, rows, columns }, between) {
  const numbers = new Set(columns.filter((c) => c.number).flatMap((c) => [c.at, ...(c.interval ?? [])]));
  return fields([names], () => false, between) + fields(rows, (i) => numbers.has(i), between);
}
