// Fails if package-lock.json would let a tampered package in: `npm run check:lock [FILE]`. Every package must have the
// hash of its contents, and none may name a registry's host. `.ci/run` runs it before `npm ci`, with the machine's own
// Node: hence plain JavaScript, without dependencies.
import { readFileSync } from "node:fs";

/**
 * Versions whose hashes the registry did not give when they were locked, all for other machines than those that this
 * project is built on. Without them in the lock file nobody could install it there. Where `npm ci` would install one of
 * them, it is an error like any other package without a hash.
 */
const withoutHash = new Set([
  "@biomejs/cli-android-arm64@2.6.8",
  "@biomejs/cli-android-x64@2.6.8",
  "@biomejs/cli-darwin-arm64@2.6.8",
  "@biomejs/cli-darwin-x64@2.6.8",
  "@biomejs/cli-linux-arm64-musl@2.6.8",
  "@biomejs/cli-linux-x64-musl@2.6.8",
  "@biomejs/cli-win32-arm64@2.6.8",
  "@biomejs/cli-win32-x64@2.6.8",
  "@bufbuild/buf-darwin-arm64@1.75.0",
  "@bufbuild/buf-darwin-x64@1.75.0",
  "@bufbuild/buf-linux-armv7@1.75.0",
  "@bufbuild/buf-win32-arm64@1.75.0",
  "@bufbuild/buf-win32-x64@1.75.0",
  "@duckdb/node-bindings-darwin-arm64@1.5.6-r.1",
  "@duckdb/node-bindings-darwin-x64@1.5.6-r.1",
  "@duckdb/node-bindings-linux-arm64@1.5.6-r.1",
  "@duckdb/node-bindings-linux-arm64-musl@1.5.6-r.1",
  "@duckdb/node-bindings-win32-arm64@1.5.6-r.1",
  "@duckdb/node-bindings-win32-x64@1.5.6-r.1",
]);

const file = process.argv[2] ?? new URL("../package-lock.json", import.meta.url);
const { packages } = JSON.parse(readFileSync(file, "utf8"));
const problems =
  packages === undefined ? [`${file}: no list of packages`] : Object.entries(packages).flatMap(problemsOf);
if (problems.length > 0) {
  console.error(`${problems.join("\n")}
npm leaves hashes out when it makes the file from a copied node_modules folder. Make it from the registry: in an empty
folder with package.json, .npmrc and the lock file without these packages, run npm install --package-lock-only.`);
  process.exitCode = 1;
}

/** A package's problems, one line each. */
function problemsOf([path, entry]) {
  // the project itself, and folders that are linked to
  if (path === "" || entry.link === true) return [];
  const name = entry.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const id = `${name}@${entry.version}`;
  const found = [];
  if (/^[a-z+]+:\/\//.test(entry.resolved ?? "")) found.push(`${id}: names the host it comes from`);
  if (entry.integrity === undefined) {
    if (!withoutHash.has(id)) found.push(`${id}: no hash (integrity)`);
    else if (!isForOthers(entry)) found.push(`${id}: no hash (integrity), and npm ci would install it here`);
  } else if (!/\bsha512-/.test(entry.integrity)) found.push(`${id}: a hash weaker than SHA-512`);
  return found;
}

/** Whether npm leaves the package out on this machine. */
function isForOthers({ optional, os, cpu, libc }) {
  const excludes = (list, value) =>
    list !== undefined && !list.some((name) => name.startsWith("!")) && !list.includes(value);
  return (
    optional === true &&
    (excludes(os, process.platform) || excludes(cpu, process.arch) || excludes(libc, libcHere()))
  );
}

function libcHere() {
  if (process.platform !== "linux") return undefined;
  return process.report.getReport().header.glibcVersionRuntime === undefined ? "musl" : "glibc";
}
