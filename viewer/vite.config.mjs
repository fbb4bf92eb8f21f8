// One page out of many files: npx vite build writes src/regard/viewer/static/viewer.html, with one script and one style in it,
// and beside it SOURCES.sha256, by which a test knows that the page was built from these sources.
//
//   npx vite build                                      the page that is shipped
//   npx vite build --outDir DIR                         the same somewhere else
//   npx vite build --mode invented --outDir DIR         with a payload made up by src/testing/invent.ts, to look at

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const ROOT = dirname(fileURLToPath(import.meta.url));
const STATIC = resolve(ROOT, "../src/regard/viewer/static");

/** The page's final form: named viewer.html, plain tags (their content is hashed by the page's policy), script after payload. */
function page() {
  return {
    name: "regard-page",
    enforce: "post",
    generateBundle: {
      order: "post", // after viteSingleFile, which has put script and style into the page
      handler(_, bundle) {
        const built = bundle["viewer.html"];
        if (built?.type !== "asset") throw new Error("the build has no page");
        built.source = arranged(String(built.source));
      },
    },
    closeBundle() {
      if (resolve(ROOT, this.environment.config.build.outDir) !== STATIC) return;
      writeFileSync(join(STATIC, "SOURCES.sha256"), `${digest()}\n`);
    },
  };
}

function arranged(html) {
  const script = /<script type="module"[^>]*>([\s\S]*?)<\/script>/.exec(html);
  const style = /<style[^>]*>([\s\S]*?)<\/style>/.exec(html);
  if (!script || !style) throw new Error("the page needs one script and one style inside it");
  const rest = html.replace(script[0], "").replace(style[0], () => `<style>${style[1]}</style>`);
  const whole = rest.replace("</body>", () => `<script type="module">${script[1]}</script>\n</body>`);
  for (const marker of ["<!--policy-->", "<!--payload-->", "</script>", "<style>", "</style>", "</body>"]) {
    if (whole.split(marker).length !== 2) throw new Error(`the page needs ${marker} once`);
  }
  if (/\s(?:src|href)="/.test(whole.replace(script[1], ""))) throw new Error("the page names something outside itself");
  return whole;
}

/** SHA-256, in hex, of the lines "PATH SHA256\n" of every file under viewer/, sorted by path as bytes.
 *
 * PATH is relative to viewer/ with forward slashes, SHA256 is of the file's bytes; files under a node_modules, dist or
 * coverage directory do not count.
 */
function digest() {
  const sum = (content) => createHash("sha256").update(content).digest("hex");
  const paths = files(ROOT).map((path) => relative(ROOT, path).split(sep).join("/"));
  paths.sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
  return sum(paths.map((path) => `${path} ${sum(readFileSync(join(ROOT, path)))}\n`).join(""));
}

function files(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return ["node_modules", "dist", "coverage"].includes(entry.name) ? [] : files(path);
    return [path];
  });
}

export default defineConfig({
  root: ROOT,
  plugins: [viteSingleFile({ outputFileName: "viewer.html" }), page()],
  build: { target: "es2022", outDir: STATIC, emptyOutDir: false, modulePreload: false, reportCompressedSize: false },
  test: { pool: "threads", isolate: false, maxWorkers: 1, setupFiles: ["src/testing/fresh.ts"] },
});
