// Bundles the page into two files, which the Python package ships. The same sources and lock file
// give the same bytes. The licences of what is bundled stand at the top of the script.
import { readdirSync, readFileSync } from "node:fs";

import { build } from "esbuild";

const options = {
  entryPoints: { page: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "ascii",
  legalComments: "none",
  define: { "process.env.NODE_ENV": '"production"' },
  outdir: "../src/rspmn/report/assets",
};

/** The packages that a build takes something from. */
async function bundled() {
  const { metafile } = await build({ ...options, write: false, metafile: true });
  const found = Object.keys(metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(found)].sort();
}

/** The licences of packages, each text once. */
function licences(names) {
  const texts = new Map();
  for (const name of names) {
    const folder = `node_modules/${name}`;
    const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(`${folder}/${file}`, "utf8").trim() : String(license);
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, of]) => `${of.join(", ")}\n\n${text}`).join("\n\n----\n\n");
}

const text = licences(await bundled()).replaceAll("*/", "* /").replaceAll("</", "< /");
await build({ ...options, banner: { js: `/*!\n${text}\n*/` }, logLevel: "info" });
