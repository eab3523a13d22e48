import { expect, test } from "vitest";
import { figureUnder, type MeasuredFigure } from "../../../src/analytics/reconcile/window-figures.ts";
import { runInside } from "../../fixtures/command/command-inside.ts";
import { degenerateArchive } from "../../fixtures/degenerate/degenerate-archive.ts";
import { equity, transfer } from "../../fixtures/degenerate/degenerate-rows.ts";

interface Row extends MeasuredFigure {
  readonly portfolio: string;
  readonly metric: string;
}

const series = Object.entries({
  "gains and losses": [1000, 1040, 1010, 1090, 970, 1005, 1120, 1100],
  "losses alone": [1000, 990, 960, 955, 900],
  "gains alone": [1000, 1010, 1030, 1031],
});

test("figures of one period a year become those of more as the macro has them", async () => {
  await using archive = await degenerateArchive({
    name: "figures of periods",
    rows: {
      equity: series.flatMap(([portfolio, values]) => equity(values, { portfolio })),
      events: series.map(([portfolio, values]) => transfer(0, values[0]!, { portfolio })),
    },
  });
  const { instanceId, runId } = archive.ref;
  const figuresOf = async (periods: number) => {
    const sql = `SELECT portfolio, metric, value, reason, n FROM performance('${instanceId}', '${runId}', base := 'first', periods := ${periods}.0)`;
    const { stdout } = await runInside(["query", "--archive", archive.dir, sql, "--format", "json"]);
    const rows = JSON.parse(stdout) as Row[];
    return series.map(
      ([name]) =>
        new Map(
          rows
            .filter(({ portfolio }) => portfolio === name)
            .map((row) => [row.metric, { ...row, n: Number(row.n) }]),
        ),
    );
  };
  const once = await figuresOf(1);
  for (const periods of [252, 365, 525_600]) {
    const often = await figuresOf(periods);
    for (const [place, [name]] of series.entries()) {
      const [one, expected] = [once[place]!, often[place]!];
      expect(expected.size, name).toBeGreaterThan(30);
      expect([...expected.keys()]).toEqual([...one.keys()]);
      for (const [metric, { value, n }] of expected) {
        const made = figureUnder(one, metric, { periods, ddof: 1 })!;
        expect([name, metric, made.value === null, made.n]).toEqual([name, metric, value === null, n]);
        if (value !== null)
          expect(Math.abs(made.value! / value - 1) < 1e-9 || made.value === value, metric).toBe(true);
      }
    }
  }
});
