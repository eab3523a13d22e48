// @module-tag slow
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type MeasureOptions, measureRuns } from "../../../src/analytics/metrics/measure-runs.ts";
import type { Manifest } from "../../../src/archive/manifest/manifest.ts";
import type { RunvaultError } from "../../../src/model/error.ts";
import { buildArchive } from "../../fixtures/archive/query-archive.ts";

const run = { instanceId: "a", runId: "1" };
const options: MeasureOptions = {
  ...{ session: "utc", fill: false, periods: null, rf: 0, log: false, base: "first", benchmark: null },
  ...{
    rates: null,
    psrBenchmark: 0,
    bookAgeMs: 60_000,
    horizons: [1, 5, 20],
    omegaReturn: 0,
    group: "flat",
    fillOrder: "auto",
    window: null,
    instruments: null,
    allowIncomplete: false,
    memoryLimitMb: 512,
  },
};

let built: Awaited<ReturnType<typeof buildArchive>>;
let manifest: Manifest;
beforeAll(async () => {
  const complete = { state: "COMPLETE", rows: 3 } as const;
  const bars = { state: "INCOMPLETE", rows: 3 } as const;
  built = await buildArchive([
    { ...run, tables: { equity: complete, bars: complete } },
    { instanceId: "a", runId: "2", tables: { equity: complete, fills: complete, bars } },
  ]);
  manifest = (await built.archive.manifest(run))!;
});
afterAll(() => built.dispose());

test("of a run that goes on, figures are until its horizon", async () => {
  const open = { ...manifest, run: { ...manifest.run, final: false }, horizon: "1640995260000000009" };
  const { runs } = await measureRuns(built.archive, [open], options);
  expect(runs[0]!.until).toBe("2022-01-01T00:01:00.000000009Z");
  const ended = await measureRuns(built.archive, [manifest], options);
  expect(ended.runs[0]!.until).toBeNull();
});

test("a section says that its table is absent, or was never archived", async () => {
  const { bars, ...others } = manifest.tables;
  const proven = { ...bars!.proven!, state: "ABSENT" as const, parquet: [] };
  const fills = { ...bars!, state: "ABSENT" as const, proven };
  const absent = { ...manifest, tables: { ...others, fills } };
  const told = await measureRuns(built.archive, [manifest, absent], options);
  expect(told.runs.map(({ sections }) => sections.find(({ name }) => name === "trades")!.absent)).toEqual([
    "fills was never archived for this run",
    "the gateway keeps no fills of this run",
  ]);
  expect(told.runs[0]!.sections[0]!).toMatchObject({
    absent: null,
    notes: ["events were never archived: deposits and withdrawals are unknown and count as returns"],
  });
});

describe("where bars are not proven", () => {
  const incomplete = async () => (await built.archive.manifest({ instanceId: "a", runId: "2" }))!;

  test("the figures of equity stand, the trades say why they do not, and the caller is told", async () => {
    const refused: RunvaultError[] = [];
    const onRefused = (error: RunvaultError) => refused.push(error);
    const { runs } = await measureRuns(built.archive, [await incomplete()], { ...options, onRefused });
    expect(runs[0]).toMatchObject({ refused: ["bars (INCOMPLETE)"], unproven: [] });
    const absent = runs[0]!.sections.map((section) => [section.name, section.absent]);
    expect(Object.fromEntries(absent)).toMatchObject({
      performance: null,
      drawdowns: null,
      trades: "needs rows that are not proven: bars (INCOMPLETE)",
    });
    expect(refused).toMatchObject([{ code: "incomplete", message: expect.stringContaining("bars of a/2") }]);
  });

  test("so do not those that are compared with a symbol", async () => {
    const benchmark = { kind: "symbol", symbol: "BTC" } as const;
    const onRefused = () => {};
    const { runs } = await measureRuns(built.archive, [await incomplete()], {
      ...options,
      benchmark,
      onRefused,
    });
    expect(runs[0]!.sections[0]!.absent).toBe("needs rows that are not proven: bars (INCOMPLETE)");
    expect(runs[0]!.sections[1]!.absent).toBeNull();
  });

  test("all is refused where the caller does not ask for what stands", async () => {
    await expect(measureRuns(built.archive, [await incomplete()], options)).rejects.toMatchObject({
      code: "incomplete",
    });
  });
});

test("a table whose latest attempt failed is refused, and the error names it", async () => {
  const equity = manifest.tables.equity!;
  const attempt = {
    ...equity.attempt,
    outcome: "INCOMPLETE",
    behindSince: "2026-01-02T00:00:00.000Z",
  } as const;
  const behind = {
    ...manifest,
    tables: { ...manifest.tables, equity: { ...equity, state: "INCOMPLETE", attempt } as typeof equity },
  };
  await expect(measureRuns(built.archive, [behind], options)).rejects.toMatchObject({
    code: "incomplete",
    message: expect.stringContaining("equity of a/1"),
    hint: expect.stringContaining("--allow-incomplete"),
  });
});
