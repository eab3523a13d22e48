// @module-tag slow
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TableName } from "../../src/model/profile/table.ts";
import { ForeignBench, profileOf } from "../fixtures/foreign/foreign-bench.ts";
import { wrongProfiles } from "../fixtures/foreign/wrong-profiles.ts";
import { someOf } from "../fixtures/trials/cases.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-wrong-profiles-"));
  await copyFile(join(import.meta.dirname, "../fixtures/foreign/acme.key"), join(folder, "acme.key"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("each mistake is one place of a right profile", async () => {
  expect(wrongProfiles.length).toBeGreaterThanOrEqual(30);
  for (const { name, gateway, edits } of wrongProfiles) {
    const text = await readFile(profileOf(gateway), "utf8");
    for (const [right] of edits) expect([name, right, text.split(right).length]).toEqual([name, right, 2]);
  }
});

test.each(someOf(wrongProfiles, 5).map((profile) => [profile.name, profile] as const))(
  "%s: archive certifies nothing that is wrong, and no value is empty without a word",
  async (name, { gateway, edits, human }) => {
    const file = join(folder, `${name.replaceAll(/[^a-z]/g, "-")}.yaml`);
    let text = await readFile(profileOf(gateway), "utf8");
    for (const [right, wrong] of edits) text = text.replace(right, wrong);
    await writeFile(file, text);
    await using bench = await ForeignBench.open(gateway);
    const { status, stdout, stderr } = await bench.archive(file);
    expect(stderr).not.toContain("internal:");
    for (const table of bench.gateway.dialect.tables as TableName[]) {
      const held = await bench.table(table);
      const certified = held?.proven?.certificate ?? null;
      if (certified === null) {
        // what is asked for and not there is not passed over
        if (held?.state !== "ABSENT") expect(status).not.toBe(0);
        continue;
      }
      const lines = await bench.lines(table);
      const wrong = differing(bench.truth(table), lines);
      if (human !== undefined) continue;
      // a value may be left empty, or be a constant, where that is told by the field's name
      const told = (field: string) => (stdout + stderr).includes(field);
      expect([name, wrong.filter((column) => !told(fieldOf[column] ?? column)), stderr]).toEqual([
        name,
        [],
        stderr,
      ]);
    }
  },
);

/** Fields of the columns that a wrong profile leaves out. */
const fieldOf: Readonly<Record<string, string>> = { fee_currency: "eeC" };

/** Names of columns in which rows differ; `rows` where they are not as many. */
function differing(truth: readonly string[], lines: readonly string[]): string[] {
  if (truth.length !== lines.length) return ["rows"];
  const names = new Set<string>();
  for (const [at, line] of lines.entries()) {
    if (line === truth[at]) continue;
    const [right, found] = [truth[at]!, line].map((one) => JSON.parse(one) as Record<string, unknown>);
    for (const key of Object.keys(right!)) if (right![key] !== found![key]) names.add(key);
  }
  return [...names];
}
