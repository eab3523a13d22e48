// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ForeignBench } from "../fixtures/foreign/foreign-bench.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";
import { judged } from "../fixtures/foreign/foreign-truth.ts";
import { serveTwin, twinProfile } from "../fixtures/foreign/twin.ts";
import { someOf } from "../fixtures/trials/cases.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-twin-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const names = Object.keys(dialects) as DialectName[];

test.each(someOf(names, 2))(
  "%s: by its profile alone the archive is the one that the contract's gateway gives",
  async (name) => {
    await using bench = await ForeignBench.open(name);
    const { status, stderr } = await bench.archive();
    expect([stderr, status]).toEqual([expect.any(String), 0]);

    for (const table of dialects[name].tables as TableName[])
      expect((await bench.table(table))?.proven?.through?.profile).toBe(name);

    const twin = await serveTwin(bench.gateway);
    const twinDir = join(folder, name);
    const { hasSeq, tables } = dialects[name];
    const own = await runInside([
      ...["archive", `${judged.instanceId}/${judged.runId}`, "--archive", twinDir, "--gateway", twin.url],
      ...["--settle", "1ms", "--retries", "0", "--tables", tables.join(","), "--quiet"],
      ...(hasSeq ? [] : ["--profile", twinProfile, "--transport", "rest"]),
    ]);
    await twin.close();
    expect([own.stderr, own.status]).toEqual([expect.any(String), 0]);

    const archive = await openArchive(bench.dir);
    const twins = await openArchive(twinDir);
    for (const table of tables as TableName[]) {
      // what lists no runs never says that one has ended
      expect((await bench.table(table))?.state).toBe(name === "dahlia" ? "OPEN" : "COMPLETE");
      expect(await bench.lines(table)).toEqual(bench.truth(table));
      const lines = await parquetLines(archive, judged, table);
      expect(lines).toEqual(bench.truth(table));
      expect(await rowHash(lines)).toEqual(await rowHash(await parquetLines(twins, judged, table)));
    }
    for (const held of [archive, twins]) {
      const { checks } = await verifyRun(held, judged, { deep: true });
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    }
  },
);

test("runs says how rows came of which a profile has it otherwise than the contract", async () => {
  await using bench = await ForeignBench.open("borealis");
  await bench.archive();
  const ways = ["by the profile borealis", "seq derived", "paged by page number, each window fetched twice"];
  const runs = async (...more: string[]) =>
    (await runInside(["runs", "--archive", bench.dir, ...more])).stdout;
  expect(await runs("--wide")).toContain(`\nnorth/2026-01-05  fills: ${ways.join(", ")}\n`);
  expect(await runs()).not.toContain("profile");
  const { runs: listed } = JSON.parse(await runs("--json"));
  expect(listed).toMatchObject([{ tables: { fills: { through: ways } } }]);
});
