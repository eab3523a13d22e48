import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

const folder = mkdtempSync(join(tmpdir(), "runvault-licences-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = join(folder, "package-lock.json");
const script = inProject("scripts/licences.ts");
const lock = JSON.parse(readFileSync(inProject("package-lock.json"), "utf8")) as {
  packages: Record<string, object>;
};

/** The packages that `npm run check:licences` refuses, with these beside the project's own. */
function refused(packages: Record<string, object>): string[] {
  writeFileSync(file, JSON.stringify({ ...lock, packages: { ...lock.packages, ...packages } }));
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--check", file], {
    encoding: "utf8",
  });
  // the last two lines say what to do
  const lines = stderr.trimEnd().split("\n").slice(0, -2);
  expect([status, stdout], stderr).toEqual([lines.length === 0 ? 0 : 1, ""]);
  return lines.map((line) => line.replace(/ +/g, " "));
}

test("every package has a licence that is listed", () => {
  expect(refused({})).toEqual([]);
  const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});

test("a licence that is not listed is refused, as an expression too, and one for tools in what is shipped", () => {
  expect(
    refused({
      "node_modules/a": { version: "1.0.0", license: "GPL-3.0-only" },
      "node_modules/b": { version: "1.0.0", license: "MIT OR GPL-3.0-only", dev: true },
      "node_modules/c": { version: "1.0.0", license: "(MIT AND SSPL-1.0)" },
      "node_modules/x/node_modules/@y/d": { version: "2.0.0", license: "MPL-2.0" },
      "node_modules/e": { version: "2.0.0", license: "MPL-2.0", dev: true },
    }),
  ).toEqual([
    "@y/d 2.0.0 MPL-2.0",
    "a 1.0.0 GPL-3.0-only",
    "b 1.0.0 MIT OR GPL-3.0-only (development)",
    "c 1.0.0 (MIT AND SSPL-1.0)",
  ]);
});

test("a package without a licence is refused, but for a part of a package that has one, for another machine", () => {
  const whole = { version: "1.0.0", license: "MIT", optionalDependencies: { "part-of-whole": "1.0.0" } };
  const part = { version: "1.0.0", optional: true };
  expect(refused({ "node_modules/a": { version: "1.0.0" } })).toEqual(["a 1.0.0 none"]);
  expect(
    refused({ "node_modules/whole": whole, "node_modules/part-of-whole": { ...part, os: ["none"] } }),
  ).toEqual([]);
  expect(refused({ "node_modules/part-of-whole": { ...part, os: ["none"] } })).toEqual([
    "part-of-whole 1.0.0 none",
  ]);
  expect(refused({ "node_modules/whole": whole, "node_modules/part-of-whole": part })).toEqual([
    "part-of-whole 1.0.0 none",
  ]);
});

test("what an installed package says of itself counts, not what was locked", () => {
  mkdirSync(join(folder, "node_modules", "a"), { recursive: true });
  writeFileSync(join(folder, "node_modules", "a", "package.json"), JSON.stringify({ license: "BUSL-1.1" }));
  expect(refused({ "node_modules/a": { version: "1.0.0", license: "MIT" } })).toEqual(["a 1.0.0 BUSL-1.1"]);
  rmSync(join(folder, "node_modules"), { recursive: true });
});

test("the table names every package with version and licence", () => {
  const { stdout } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  expect(stdout).toMatch(/^commander +15\.1\.0 +MIT$/m);
  expect(stdout).toMatch(/^lightningcss +[\d.]+ +MPL-2\.0 {2}\(development\)$/m);
  expect(stdout.trimEnd().split("\n")).toHaveLength(Object.keys(lock.packages).length - 1);
});
