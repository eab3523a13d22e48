import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

const folder = mkdtempSync(join(tmpdir(), "runvault-lock-"));
afterAll(() => rmSync(folder, { recursive: true }));

const sha512 = `sha512-${"A".repeat(86)}==`;
const lock = JSON.parse(readFileSync(inProject("package-lock.json"), "utf8")) as {
  packages: Record<string, object>;
};

/** What `npm run check:lock` says of this project's lock file with these packages in it; empty where it passes. */
function problems(packages: Record<string, object>): string[] {
  const file = join(folder, "package-lock.json");
  writeFileSync(file, JSON.stringify({ ...lock, packages: { ...lock.packages, ...packages } }));
  const script = inProject("scripts/check-lock.mjs");
  const { status, stderr } = spawnSync(process.execPath, [script, file], { encoding: "utf8" });
  // the last two lines say what to do
  const lines = stderr.trimEnd().split("\n").slice(0, -2);
  expect(status, stderr).toBe(lines.length === 0 ? 0 : 1);
  return lines;
}

test("the lock file has a hash of every package, and no package names where it came from", () => {
  expect(problems({})).toEqual([]);
});

test("packages without a hash are named, wherever they lie", () => {
  const zod = { version: "4.6.7", license: "MIT" };
  expect(
    problems({ "node_modules/zod": zod, "node_modules/a/node_modules/@b/c": { version: "1.0.0" } }),
  ).toEqual(["zod@4.6.7: no hash (integrity)", "@b/c@1.0.0: no hash (integrity)"]);
});

test("hashes that can be forged, and addresses, are told", () => {
  const weak = { version: "1.0.0", integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" };
  const address = {
    version: "1.0.0",
    resolved: "https://registry.example/a/-/a-1.0.0.tgz",
    integrity: sha512,
  };
  expect(problems({ "node_modules/weak": weak, "node_modules/address": address })).toEqual([
    "weak@1.0.0: a hash weaker than SHA-512",
    "address@1.0.0: names the host it comes from",
  ]);
});

test("folders that are linked to have no hash", () => {
  expect(problems({ "node_modules/linked": { resolved: "packages/linked", link: true } })).toEqual([]);
});

test("what is known to have none is told where npm would install it", () => {
  const known = { version: "2.6.8", optional: true };
  const path = "node_modules/@biomejs/cli-darwin-arm64";
  const here = { ...known, os: [process.platform], cpu: [process.arch] };
  expect(problems({ [path]: { ...known, os: ["none"], cpu: [process.arch] } })).toEqual([]);
  expect(problems({ [path]: here })).toEqual([
    "@biomejs/cli-darwin-arm64@2.6.8: no hash (integrity), and npm ci would install it here",
  ]);
  expect(problems({ [path]: { ...here, os: ["none"], version: "2.6.9" } })).toEqual([
    "@biomejs/cli-darwin-arm64@2.6.9: no hash (integrity)",
  ]);
});
