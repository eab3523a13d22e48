import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";
import { goldenPython, recordings, requires } from "../fixtures/command/requirement.ts";

const folder = inProject("test", "fixtures", "golden");
const scripts = readdirSync(folder).filter((name) => name.endsWith(".py"));
const isThere = requires("golden") && requires("recordings");

/** Of the last digits: numpy computes them as the processor does, and tests of the figures allow a thousand times more. */
const tolerance = 1e-12;

/** Where two documents differ: the path and both values. */
function differences(made: unknown, kept: unknown, path = ""): string[] {
  if (typeof made === "number" && typeof kept === "number") {
    const isSame =
      made === kept || Math.abs(made - kept) <= tolerance * Math.max(Math.abs(made), Math.abs(kept));
    return isSame ? [] : [`${path}: ${made}, and ${kept} is kept`];
  }
  if (typeof made !== "object" || typeof kept !== "object" || made === null || kept === null) {
    return made === kept ? [] : [`${path}: ${JSON.stringify(made)}, and ${JSON.stringify(kept)} is kept`];
  }
  const [a, b] = [made, kept] as Record<string, unknown>[];
  return [...new Set([...Object.keys(a!), ...Object.keys(b!)])].flatMap((key) =>
    differences(a![key], b![key], `${path}/${key}`),
  );
}

describe.skipIf(!isThere)("golden values, made anew by the libraries that they come from", () => {
  test.each(scripts)("are what is kept of %s", async (script) => {
    const made = await promisify(execFile)(goldenPython, [join(folder, script), recordings], {
      maxBuffer: 2 ** 28,
    });
    const kept = readFileSync(join(folder, script.replace(/\.py$/, ".json")), "utf8");
    expect(differences(JSON.parse(made.stdout), JSON.parse(kept))).toEqual([]);
  });
});

test("a difference of golden values is seen, wherever it is", () => {
  const kept = { n: 1, values: { sharpe: 2, list: [3, 4] }, words: "a" };
  expect(differences(structuredClone(kept), kept)).toEqual([]);
  const made = { n: 1 + 1e-13, values: { sharpe: 2.000001, list: [3] }, words: "b", more: null };
  const paths = differences(made, kept).map((text) => text.split(":")[0]);
  expect(paths).toEqual(["/values/sharpe", "/values/list/1", "/words", "/more"]);
});
