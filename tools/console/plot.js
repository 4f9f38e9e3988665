// What the console uses of Observable Plot, as one module.
export { plot, barY, dot, lineY, ruleY, ruleX, link, axisX, axisY } from "@observablehq/plot";
