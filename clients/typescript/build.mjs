// Compiles the sources twice: as modules for browsers, Workers and Node, and as CommonJS. `node build.mjs [FOLDER]`
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "dist"));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

rmSync(out, { recursive: true, force: true });
const variants = { esm: { type: "module", options: [] }, cjs: { type: "commonjs", options: ["--module", "commonjs", "--moduleResolution", "node10"] } };
for (const [name, { type, options }] of Object.entries(variants)) {
  const folder = join(out, name);
  mkdirSync(folder, { recursive: true });
  execFileSync(process.execPath, [tsc, "--project", join(here, "tsconfig.json"), "--outDir", folder, ...options], { stdio: "inherit" });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type }));
}
