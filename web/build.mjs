// Bundles the page into two files, which the Python package ships. The same sources and lock file
// give the same bytes. The licences of what is bundled stand at the top of the script. A third file
// has digests of the sources and of what was built, so that a test can tell whether they fit.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

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

function digest(content) {
  return createHash("sha256").update(content).digest("hex");
}

/** The digests of files by name, those of folders too. */
function digests(folder, names) {
  return Object.fromEntries(
    [...names].sort().map((name) => [name, digest(readFileSync(`${folder}/${name}`))]),
  );
}

const text = licences(await bundled()).replaceAll("*/", "* /").replaceAll("</", "< /");
await build({ ...options, banner: { js: `/*!\n${text}\n*/` }, logLevel: "info" });
const sources = readdirSync("src").map((name) => `src/${name}`);
const others = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"];
const facts = {
  sources: digests(".", [...sources, ...others]),
  built: digests(options.outdir, ["page.css", "page.js"]),
};
writeFileSync(`${options.outdir}/digests.json`, `${JSON.stringify(facts, null, 1)}\n`);
