import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { EquityWorld } from "../fixtures/analytics/equity-world.ts";
import { inProject } from "../fixtures/command/project.ts";
import { recordings, requires } from "../fixtures/command/requirement.ts";

const numbers = z.record(z.string(), z.number());
const goldenSchema = z.object({
  seeds: z.object({ equity: z.number(), benchmark: z.number() }),
  cases: z.record(
    z.string(),
    z.array(
      z.object({
        session: z.string(),
        fill: z.boolean(),
        periods: z.number(),
        rf: z.number(),
        n: z.number(),
        base: z.enum(["first", "deposit"]),
        values: numbers,
        also: z.record(z.string(), numbers),
        others: z.record(z.string(), numbers),
        rolling: z.object({
          window: z.number(),
          volatility: z.tuple([z.number(), z.number()]),
          count: z.number(),
          sharpe_without_rf: z.tuple([z.number(), z.number()]).optional(),
        }),
        drawdowns: z
          .record(
            z.enum(["pyfolio", "quantstats"]),
            z.array(
              z.tuple([z.number(), z.string(), z.string(), z.string().nullable(), z.number().nullable()]),
            ),
          )
          .optional(),
        monthly: z.array(z.tuple([z.number(), z.number(), z.number()])).optional(),
      }),
    ),
  ),
  normal_cdf: z.array(z.tuple([z.number(), z.number()])),
});

const file = inProject("test", "fixtures", "golden", "performance.json");
const golden = goldenSchema.parse(JSON.parse(readFileSync(file, "utf8")));

/** How far apart two numbers are, relative to the one that is expected. */
const apart = (got: unknown, expected: number) => Math.abs(Number(got) - expected) / Math.abs(expected);

/** The daily series of the script that made the golden values, by the same formula of integers. */
function seeded(seed: number): [string, string][] {
  const first = Date.UTC(2022, 0, 1, 20);
  let state = BigInt(seed);
  let value = 100_000_000n;
  return Array.from({ length: 1_096 }, (_, day) => {
    const point: [string, string] = [
      new Date(first + day * 86_400_000).toISOString().slice(0, -1),
      String(value),
    ];
    state = (state * 1_103_515_245n + 12_345n) % 2n ** 31n;
    value = (value * (10_000n + ((state / 256n) % 401n) - 198n)) / 10_000n;
    return point;
  });
}

/** The deposit and the equity of a simulated run. */
const simulated = (name: string) => (world: EquityWorld) =>
  world.deposited(inProject("test", "fixtures", "golden", `simulated-${name}.csv.gz`));

const worlds = {
  btc: (world: EquityWorld) => world.recorded(join(recordings, "btc-perp-1m-2022-01.csv.gz")),
  gbpusd: (world: EquityWorld) => world.recorded(join(recordings, "gbpusd-m1-bid-2012.csv.gz")),
  seeded: async (world: EquityWorld) => {
    await world.equity(seeded(golden.seeds.equity));
    await world.benchmark(seeded(golden.seeds.benchmark));
  },
  winning: simulated("winning"),
  losing: simulated("losing"),
};

describe.each(Object.entries(worlds))("figures of %s", (name, fillWorld) => {
  const isThere = !["btc", "gbpusd"].includes(name) || requires("recordings");
  let world: EquityWorld;

  beforeAll(async () => {
    world = await EquityWorld.open();
    if (isThere) await fillWorld(world);
  });

  describe.skipIf(!isThere).each(golden.cases[name]!)(
    "over $session sessions, $periods a year, filled: $fill",
    (expected) => {
      const series = `base := '${expected.base}', session := '${expected.session}', fill := ${expected.fill}`;
      const yearly = `${series}, periods := ${expected.periods}`;
      const figuresNow = () => world.figures(`${yearly}, rf := ${expected.rf}`);

      it("are those of quantstats, empyrical and pyfolio where they compute the same", async () => {
        const figures = await figuresNow();
        expect(figures.total_return!.n).toBe(expected.n);
        const wrong = Object.entries(expected.values).filter(
          ([metric, value]) => !(apart(figures[metric]?.value, value) <= 1e-9),
        );
        expect(wrong.map(([metric, value]) => [metric, figures[metric], value])).toEqual([]);
        const also = Object.entries(expected.also).flatMap(([metric, values]) =>
          Object.entries(values).filter(([, value]) => !(apart(figures[metric]?.value, value) <= 1e-9)),
        );
        expect(also).toEqual([]);
      });

      it("are others than what a library gives under the same name by another convention", async () => {
        const figures = await figuresNow();
        const same = Object.entries(expected.others).flatMap(([metric, others]) =>
          Object.entries(others).filter(([, value]) => !(apart(figures[metric]!.value, value) > 1e-6)),
        );
        expect(same).toEqual([]);
      });

      it("roll over a window as pandas and pyfolio have it", async () => {
        const { window, volatility, count, sharpe_without_rf: sharpe } = expected.rolling;
        const rows = await world.rows("rolling", `window_size := ${window}, ${yearly}`);
        const known = rows.filter((row) => row.volatility !== null);
        expect(rows.length - known.length).toBe(window - 1);
        expect(known).toHaveLength(count);
        expect(apart(known[0]!.volatility, volatility[0])).toBeLessThan(1e-9);
        expect(apart(known.at(-1)!.volatility, volatility[1])).toBeLessThan(1e-9);
        if (sharpe === undefined) return;
        expect(apart(known[0]!.sharpe, sharpe[0])).toBeLessThan(1e-9);
        expect(apart(known.at(-1)!.sharpe, sharpe[1])).toBeLessThan(1e-9);
      });

      it.skipIf(expected.drawdowns === undefined || expected.session !== "utc")(
        "have drawdowns as deep as theirs, from pyfolio's peak to its recovery; quantstats begins and ends a session inside",
        async () => {
          const dateOf = (ts: unknown) =>
            ts === null ? null : new Date((ts as Date).getTime() - 1).toISOString().slice(0, 10);
          const ours = await world.rows("drawdowns", series, "depth");
          const { pyfolio, quantstats } = expected.drawdowns!;
          const ownOf = (trough: string) => ours.find((row) => dateOf(row.trough_ts) === trough)!;
          expect(pyfolio.length).toBeGreaterThan(0);
          for (const [depth, peak, trough, recovery] of pyfolio) {
            const own = ownOf(trough);
            expect(apart(own.depth, depth)).toBeLessThan(1e-9);
            expect([dateOf(own.peak_ts), dateOf(own.recovery_ts)]).toEqual([peak, recovery]);
          }
          for (const [depth, start, trough, end] of quantstats) {
            const own = ownOf(trough);
            expect(apart(own.depth, depth)).toBeLessThan(1e-9);
            expect(dateOf(own.peak_ts)! < start).toBe(true);
            if (own.recovery_ts !== null) expect(end! < dateOf(own.recovery_ts)!).toBe(true);
          }
        },
      );

      it.skipIf(expected.monthly === undefined)("are compounded by month as empyrical does", async () => {
        const rows = await world.rows("monthly", series);
        const months = expected.monthly!;
        expect(rows.map(({ year, month }) => [year, month])).toEqual(
          months.map(([year, month]) => [year, month]),
        );
        for (const [index, [, , value]] of months.entries()) {
          expect(Math.abs(Number(rows[index]!.ret) - value)).toBeLessThan(1e-12);
        }
        expect(rows.filter((row) => row.is_partial)).toHaveLength(Math.min(2, months.length));
      });
    },
  );
});

it("the normal distribution function is scipy's to 1e-12, in its tails as well", async () => {
  const world = await EquityWorld.open();
  const values = golden.normal_cdf.map(([x]) => `(${x}::DOUBLE)`).join(", ");
  const result = await world.connection.runAndReadAll(`SELECT normal_cdf(x) FROM (VALUES ${values}) v(x)`);
  const worst = result.getRows().map(([got], index) => apart(got, golden.normal_cdf[index]![1]));
  expect(worst).toHaveLength(161);
  expect(Math.max(...worst)).toBeLessThan(1e-12);
});
