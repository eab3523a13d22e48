// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ReconcileOptions, reconcile } from "../../../src/analytics/reconcile/reconcile.ts";
import type { Check } from "../../../src/analytics/reconcile/reconcile-report.ts";
import { type Archive, openArchive } from "../../../src/archive/archive.ts";
import { archiveRun } from "../../../src/extract/run/archive-run.ts";
import { RunvaultError } from "../../../src/model/error.ts";
import type { TableName } from "../../../src/model/profile/table.ts";
import type { RunRef } from "../../../src/model/source.ts";
import { wallClock } from "../../../src/model/time.ts";
import { openSimulator, type Simulator } from "../../../src/simulator/simulator.ts";
import { editedWorld } from "../../fixtures/archive/edited-world.ts";
import { sharedDuckDB } from "../../fixtures/archive/shared-duckdb.ts";
import type { Manners } from "../../fixtures/source/array-source.ts";
import { quickRetry } from "../../fixtures/source/quick-retry.ts";

let dir: string;
let world: Simulator;
let run: RunRef;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-missing-"));
  world = await openSimulator({ runs: 1, failed: 0, rows: 1_500, transfers: 2, cacheDir: dir });
  run = (await world.runs("alpha-1"))![0]!;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

const options: ReconcileOptions = {
  ...{ instruments: null, tolerance: null, memoryLimitMb: 512 },
  ...{ accounting: "auto", order: "auto" },
};

async function archived(manners: Manners, settings: object = {}, of = world): Promise<Archive> {
  const into = await openArchive(join(dir, `archive-${crypto.randomUUID()}`), { create: true });
  await archiveRun({
    ...{ source: await editedWorld(of, run, () => {}, manners), archive: into, run, clock: wallClock },
    ...{ retry: quickRetry(), tool: "test", duckdb: sharedDuckDB },
    signal: new AbortController().signal,
    settings: { segmentBytes: 8_000_000, sliceRows: 50_000, concurrency: 1, ...settings },
  });
  return into;
}

function numbers(checks: readonly Check[], verdict: Check["verdict"]): number[] {
  return checks.filter((check) => check.verdict === verdict).map(({ number }) => number);
}

describe("a table that the gateway does not have leaves what rests on it unchecked, and says which:", () => {
  test.each<[TableName, number[]]>([
    ["fills", [2, 3, 4, 5, 6, 8]],
    ["orders", [6, 8]],
    ["bars", [2, 3, 4, 5]],
    ["equity", [1, 2, 3, 4, 5, 7, 8]],
    ["metrics", [7]],
    ["events", [2, 3, 4, 7, 8]],
  ])("%s", async (absent, unchecked) => {
    const archive = await archived({
      literal: true,
      refuses: ({ table }) =>
        table === absent ? new RunvaultError("history_unavailable", "this run has no such table") : undefined,
    });
    expect((await archive.manifest(run))!.tables[absent]!.state).toBe("ABSENT");
    const { checks, verdict } = (await reconcile(archive, [run], options)).report.runs[0]!;
    expect(numbers(checks, "NOT CHECKED")).toEqual(unchecked);
    for (const number of unchecked)
      expect(checks[number - 1]!.reason).toContain(`${absent} is absent: the gateway keeps no such table`);
    expect(numbers(checks, "BREAKS")).toEqual([]);
    expect(verdict).toBe("NOT CHECKED");
  });
});

test("rows that are not proven do not make a check hold, and the report names their tables", async () => {
  await using small = await openSimulator({ runs: 1, failed: 0, rows: 150, cacheDir: dir });
  // the second half of the figures never came
  let answers = 0;
  const archive = await archived(
    {
      refuses: ({ table }) =>
        table === "metrics" && answers++ > 0 ? new RunvaultError("malformed_row", "no more") : undefined,
      cap: 4,
    },
    { sliceRows: 4 },
    small,
  );
  expect((await archive.manifest(run))!.tables.metrics!.state).toBe("INCOMPLETE");
  await expect(reconcile(archive, [run], options)).rejects.toMatchObject({ code: "incomplete" });
  const { report } = await reconcile(archive, [run], { ...options, allowIncomplete: true });
  const { checks, unproven } = report.runs[0]!;
  expect(unproven).toEqual(["metrics (INCOMPLETE)"]);
  expect(checks[6]).toMatchObject({ verdict: "NOT CHECKED", breaks: 0 });
  expect(checks[6]!.rows).toBeGreaterThan(0);
  expect(checks[6]!.reason).toContain("metrics is INCOMPLETE");
  expect(numbers(checks, "HOLDS")).toEqual([1, 2, 3, 4, 5, 6, 8]);
});
