// Packs the client as a version into a folder, from a copy: node pack.mjs VERSION FOLDER
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [version, folder] = process.argv.slice(2);
if (!folder) throw new Error("usage: node pack.mjs VERSION FOLDER");
const copy = mkdtempSync(join(tmpdir(), "cloudsched-client-"));
try {
  for (const name of ["src", "build.mjs", "package.json", "package-lock.json", "tsconfig.json", "README.md"]) cpSync(join(here, name), join(copy, name), { recursive: true });
  const about = JSON.parse(readFileSync(join(copy, "package.json"), "utf-8"));
  about.version = version.replace(/(\d)(a|b|rc)(\d+)$/, "$1-$2.$3"); // as npm writes what Python writes 1.2.3rc1
  const repository = process.env.GITHUB_REPOSITORY;
  if (repository) about.repository = { type: "git", url: `git+https://github.com/${repository}.git`, directory: "clients/typescript" };
  writeFileSync(join(copy, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: copy, stdio: "inherit" });
  execFileSync("npm", ["pack", "--pack-destination", resolve(folder)], { cwd: copy, stdio: "inherit" });
} finally {
  rmSync(copy, { recursive: true, force: true });
}
