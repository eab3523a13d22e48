import { expect, test } from "vitest";
import { figureUnder, type MeasuredFigure } from "../../../src/analytics/reconcile/window-figures.ts";
import { runInside } from "../../fixtures/command/command-inside.ts";
import { degenerateArchive } from "../../fixtures/degenerate/degenerate-archive.ts";
import { equity, transfer } from "../../fixtures/degenerate/degenerate-rows.ts";

interface Row extends MeasuredFigure {
  readonly metric: string;
}

test.each([
  ["gains and losses", [1000, 1040, 1010, 1090, 970, 1005, 1120, 1100]],
  ["losses alone", [1000, 990, 960, 955, 900]],
  ["gains alone", [1000, 1010, 1030, 1031]],
])("figures of one period a year become those of more as the macro has them: %s", async (_, values) => {
  await using archive = await degenerateArchive({
    name: "figures of periods",
    rows: { equity: equity(values), events: [transfer(0, values[0]!)] },
  });
  const { instanceId, runId } = archive.ref;
  const figuresOf = async (periods: number) => {
    const sql = `SELECT metric, value, reason, n FROM performance('${instanceId}', '${runId}', base := 'first', periods := ${periods}.0)`;
    const { stdout } = await runInside(["query", "--archive", archive.dir, sql, "--format", "json"]);
    return new Map((JSON.parse(stdout) as Row[]).map((row) => [row.metric, { ...row, n: Number(row.n) }]));
  };
  const one = await figuresOf(1);
  for (const periods of [252, 365, 525_600]) {
    const expected = await figuresOf(periods);
    expect([...expected.keys()]).toEqual([...one.keys()]);
    for (const [metric, { value, n }] of expected) {
      const made = figureUnder(one, metric, { periods, ddof: 1 })!;
      expect([metric, made.value === null, made.n]).toEqual([metric, value === null, n]);
      if (value !== null)
        expect(Math.abs(made.value! / value - 1) < 1e-9 || made.value === value, metric).toBe(true);
    }
  }
});
