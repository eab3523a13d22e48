import { expect, test } from "vitest";
import { runInside } from "../../fixtures/command/command-inside.ts";
import { degenerateArchive } from "../../fixtures/degenerate/degenerate-archive.ts";
import { at, equity, transfer } from "../../fixtures/degenerate/degenerate-rows.ts";

/** The verdict of check 7 for a run of these equities, one a day, that reports these figures at its end. */
async function verdictOf(
  values: readonly number[],
  reported: readonly (readonly [string, number | string])[],
) {
  await using archive = await degenerateArchive({
    name: "figures of nothing",
    rows: {
      equity: equity(values),
      events: [transfer(0, values[0]!)],
      metrics: reported.map(([name, value]) => ({
        ...{ ts_event: at(12 + (values.length - 1) * 24), account: "main", portfolio: "core" },
        ...{
          name,
          value,
          window: "run",
          // each in a group of its own
          convention: String(value),
          currency: "USD",
        },
      })),
    },
  });
  const { instanceId, runId } = archive.ref;
  const { stdout } = await runInside([
    "reconcile",
    `${instanceId}/${runId}`,
    "--archive",
    archive.dir,
    "--json",
  ]);
  const { verdict, rows, breaks } = JSON.parse(stdout).runs[0].checks[6];
  return { verdict, rows, breaks };
}

const nothing = [0, "NaN", "Infinity", "-Infinity"];
const flat = [100, 100, 100, 100, 100];
const rising = [100, 101, 103, 104, 106];

// libraries fill figures that do not exist with 0 (QuantConnect), NaN (pandas) or infinity (numpy)
test.each([
  ["returns that do not vary", flat, ["sharpe", "sortino", "calmar", "omega"]],
  ["no losing period", rising, ["sortino", "calmar", "omega"]],
  ["too few returns", [100], ["volatility", "sharpe", "sortino", "skewness", "var"]],
] as const)("0, NaN and infinity agree with no figure for %s", async (_, values, names) => {
  const reported = names.flatMap((name) => nothing.map((value) => [name, value] as const));
  expect(await verdictOf(values, reported)).toEqual({ verdict: "HOLDS", rows: reported.length, breaks: 0 });
});

test.each([
  ["a number where there is no figure", flat, ["sharpe", 1.5]],
  ["0 for a figure that exists", [100, 101, 99, 104, 102], ["sharpe", 0]],
  ["infinity for a figure that exists", [100, 101, 99, 104, 102], ["calmar", "Infinity"]],
  ["0 once equity has reached zero", [100, 60, 70, 0], ["sharpe", 0]],
] as const)("%s is a break", async (_, values, reported) => {
  expect(await verdictOf(values, [reported])).toEqual({ verdict: "BREAKS", rows: 1, breaks: 1 });
});
