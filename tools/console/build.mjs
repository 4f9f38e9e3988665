// Bundles the console's scripts from node_modules into one folder, with their licences.
//   node build.mjs FOLDER
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
const used = new Set(["node_modules/htmx.org"]);
for (const name of ["codemirror", "plot"]) {
  const { metafile } = await build({
    entryPoints: [`${name}.js`], outfile: join(folder, `${name}.js`), bundle: true, minify: true, format: "esm",
    target: "es2022", legalComments: "none", metafile: true, charset: "utf8", logLevel: "warning",
  });
  for (const input of Object.keys(metafile.inputs)) {
    const found = input.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/);
    if (found) used.add(found[0]);
  }
}
copyFileSync("node_modules/htmx.org/dist/htmx.min.js", join(folder, "htmx.js"));

const licences = [...used].sort().map((path) => {
  const { name, version, license } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const file = readdirSync(path).find((f) => /^licen[cs]e/i.test(f));
  if (!file || !existsSync(join(path, file))) throw new Error(`${name} has no licence`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(path, file), "utf8").trim()}\n`;
});
writeFileSync(join(folder, "LICENCES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));
