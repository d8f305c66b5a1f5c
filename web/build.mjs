// Bundles the page into two files, which the Python package ships. The same sources and lock file
// give the same bytes.
import { build } from "esbuild";

await build({
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
  logLevel: "info",
});
