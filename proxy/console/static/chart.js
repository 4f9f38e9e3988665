// An answer as bars, lines or points, each with the interval of its noise. A bar ends at its number; the whisker says how far off that may be.
import { barY, dot, lineY, plot, ruleX, ruleY } from "./vendor/plot.js";

const MOST = 60;

/** data: columns and rows of an answer. at: the place of the column that is drawn. */
export function drawn(data, kind, at) {
  const measure = data.columns.find((c) => c.at === at);
  const keys = data.columns.filter((c) => !c.number);
  const texts = keys.length ? keys : data.columns.filter((c) => c.at < at);
  const number = (row, place) => (row[place] === null ? null : Number(row[place]));
  const ends = (row) => (measure.interval ? { low: number(row, measure.interval[0]), high: number(row, measure.interval[1]) } : { low: null, high: null });
  const points = data.rows.slice(0, MOST).map((row, i) => ({
    x: texts.length ? texts.map((c) => row[c.at] ?? "NULL").join(", ") : `row ${i + 1}`,
    y: number(row, at), ...ends(row),
  })).filter((p) => Number.isFinite(p.y));
  const withEnds = points.filter((p) => p.low !== null && p.high !== null);
  const x = texts.map((c) => c.name).join(", ") || null;
  const shape = {
    bars: () => barY(points, { x: "x", y: "y", fill: "#4a90d9", inset: 1 }),
    lines: () => lineY(points, { x: "x", y: "y", stroke: "#4a90d9", strokeWidth: 2 }),
    points: () => dot(points, { x: "x", y: "y", fill: "#4a90d9", r: 4 }),
  }[kind];
  const svg = plot({
    className: "hushql-plot", width: Math.max(340, Math.min(900, 90 + points.length * 44)), height: 340,
    marginLeft: 80, marginBottom: 80, ariaLabel: `${measure.name} with the 95 % interval of its noise`,
    x: { type: "point", ...(kind === "bars" ? { type: "band" } : {}), domain: points.map((p) => p.x), label: x, tickRotate: -35 },
    y: { label: measure.name, grid: true, zero: kind === "bars" },
    marks: [ruleY([0]), shape(), ruleX(withEnds, { x: "x", y1: "low", y2: "high", stroke: "currentColor", strokeWidth: 1.5, className: "interval" })],
  });
  svg.querySelector("style")?.remove(); // the page's policy takes no style sheet without its nonce
  svg.setAttribute("role", "img");
  for (const mark of svg.querySelectorAll("g[aria-label]")) { // a group without a role has no name
    mark.dataset.mark = mark.getAttribute("aria-label");
    mark.removeAttribute("aria-label");
  }
  return svg;
}
