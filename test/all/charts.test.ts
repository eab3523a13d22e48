import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import vegaLiteSchema from "vega-lite/vega-lite-schema.json" with { type: "json" };
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { candlesChart } from "../../src/report/charts/candles-chart.ts";
import type { Chart, NoChart } from "../../src/report/charts/chart.ts";
import { equityChart } from "../../src/report/charts/equity-chart.ts";
import { eventsChart } from "../../src/report/charts/events-chart.ts";
import { excursionsChart } from "../../src/report/charts/excursions-chart.ts";
import { exposureChart } from "../../src/report/charts/exposure-chart.ts";
import { feesChart } from "../../src/report/charts/fees-chart.ts";
import { funnelChart } from "../../src/report/charts/funnel-chart.ts";
import { informationChart } from "../../src/report/charts/information-chart.ts";
import { latencyChart } from "../../src/report/charts/latency-chart.ts";
import { profitChart } from "../../src/report/charts/profit-chart.ts";
import { quantilesChart } from "../../src/report/charts/quantiles-chart.ts";
import { returnsChart } from "../../src/report/charts/returns-chart.ts";
import { rollingChart } from "../../src/report/charts/rolling-chart.ts";
import { slippageChart } from "../../src/report/charts/slippage-chart.ts";
import {
  chartSamples,
  drawdownsOf,
  equityRun,
  hostileText,
  nthRun,
} from "../fixtures/report/chart-samples.ts";

const samples = Object.entries(chartSamples);
const names = samples.map(([name]) => name);
const drawn = new Map<string, Chart>();
const said: unknown[] = [];

beforeAll(async () => {
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((...words) => said.push(words));
  }
  for (const [name, make] of samples) drawn.set(name, chartOf(await make()));
});

afterEach(() => {
  vi.restoreAllMocks();
});

function chartOf(made: Chart | NoChart): Chart {
  if ("reason" in made) throw new Error(`no chart: ${made.reason}`);
  return made;
}

const svgsOf = ({ wide, narrow }: Chart) => [wide, narrow];

/** Checks what every drawing promises, of data however odd. */
function expectSound(chart: Chart): void {
  for (const svg of svgsOf(chart)) {
    expect(svg).toMatch(/^<svg [^>]*role="img" aria-label="[^"]+"/);
    expect(svg).not.toMatch(/NaN|Infinity|undefined|null/);
    expect(svg).not.toContain("-0.0");
    expect(svg).not.toMatch(/ id="|url\(#/);
    expect(svg.match(/<(?:path|text|line|rect|circle)\b/g)?.length ?? 0).toBeLessThanOrEqual(3000);
    for (const [, size] of svg.matchAll(/font-size="([\d.]+)px"/g))
      expect(Number(size)).toBeGreaterThanOrEqual(10);
  }
  expect(JSON.stringify(chart.numbers)).not.toMatch(/NaN|Infinity|undefined/);
  expect(chart.numbers.rows.length).toBeLessThanOrEqual(60);
  for (const row of chart.numbers.rows) expect(row).toHaveLength(chart.numbers.columns.length);
  expect(`${chart.title}${chart.caption}`).not.toMatch(/NaN|Infinity|undefined/);
}

describe("every chart", () => {
  test.each(names)("%s is an image with a label, without ids and with no more than 3,000 marks", (name) => {
    expectSound(drawn.get(name)!);
  });

  test.each(names)("%s has the width of the page it is for", (name) => {
    const { wide, narrow } = drawn.get(name)!;
    expect(wide).toMatch(/^<svg [^>]*width="980" [^>]*viewBox="0 0 980 /);
    expect(narrow).toMatch(/^<svg [^>]*width="330" [^>]*viewBox="0 0 330 /);
  });

  test.each(names)("%s takes its colours and its font from the page", (name) => {
    for (const svg of svgsOf(drawn.get(name)!)) {
      const colours = [...svg.matchAll(/ (?:fill|stroke)="([^"]*)"/g)].map(([, colour]) => colour);
      expect(colours.length).toBeGreaterThan(0);
      for (const colour of colours) expect(colour).toMatch(/^(?:none|var\(--[a-z0-9-]+\))$/);
      for (const [, font] of svg.matchAll(/font-family="([^"]*)"/g)) expect(font).toBe("inherit");
    }
  });

  test.each(names)("%s lets no text of the data become markup", (name) => {
    const allowed = /^\/?(?:svg|g|path|text|tspan|line|rect|title)$/;
    for (const svg of svgsOf(drawn.get(name)!)) {
      for (const [, tag] of svg.matchAll(/<(\/?[^\s>/]*)/g)) expect(tag).toMatch(allowed);
      for (const [, attribute] of svg.matchAll(/<[^>]* ([a-z-]+)="/g))
        expect(attribute).not.toMatch(/^(?:on|href|xlink)/);
    }
  });

  test("tells hostile text as it is, in what is said of a mark", () => {
    const escaped = hostileText.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    expect(drawn.get("profit by symbol")!.wide.replaceAll("&quot;", '"')).toContain(`<title>${escaped}: `);
  });

  test("has the same bytes again, in another time zone too", async () => {
    const before = process.env.TZ;
    process.env.TZ = "Asia/Kathmandu";
    try {
      expect(new Date(0).getMinutes()).toBe(30);
      for (const [name, make] of samples) expect(await make(), name).toEqual(drawn.get(name));
    } finally {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    }
  });

  test("has a spec that the schema of vega-lite holds for valid, with colours of its own", () => {
    const ajv = new Ajv({ strict: false, allErrors: false, validateFormats: true });
    // what a colour looks like is left to whoever draws it
    addFormats.default(ajv);
    ajv.addFormat("color-hex", true);
    const validate = ajv.compile(vegaLiteSchema);
    for (const [name, { spec }] of drawn) {
      const plain = JSON.parse(JSON.stringify(spec));
      expect(validate(plain), `${name}: ${ajv.errorsText(validate.errors)}`).toBe(true);
      expect(JSON.stringify(plain)).not.toContain("var(--");
    }
  });

  test("is drawn without a word of warning", () => {
    expect(said).toEqual([]);
  });

  test("says in its table what was left out of it", () => {
    expect(drawn.get("equity")!.numbers.note).toBe("60 of 1,096 points.");
    expect(drawn.get("events")!.numbers.note).toBe("60 of 5,000 events.");
    expect(drawn.get("profit by hour")!.numbers.note).toBe("");
  });

  test("takes no more than half a megabyte at both widths", () => {
    for (const [name, { wide, narrow }] of drawn)
      expect(wide.length + narrow.length, name).toBeLessThan(600_000);
  });
});

describe("the chart of equity", () => {
  test("shades the five deepest drawdowns, numbers them, and tells each", () => {
    const { wide } = drawn.get("equity")!;
    const titles = [...wide.matchAll(/<title>(Drawdown \d[^<]*)<\/title>/g)].map(([, title]) => title!);
    expect(titles.map((title) => title.slice(0, 10)).sort()).toEqual(
      [1, 2, 3, 4, 5].map((rank) => `Drawdown ${rank}`),
    );
    expect(titles.find((title) => title.startsWith("Drawdown 1"))).toMatch(
      /^Drawdown 1: −\d+\.\d\d%, from \d+ \w{3} \d{4}, trough \d+ \w{3} \d{4}, (?:recovered|not recovered)/,
    );
  });

  test("has a logarithmic scale where equity grew tenfold, and says so", () => {
    expect(drawn.get("equity grown tenfold")!.caption).toContain("on a logarithmic scale");
    expect(JSON.stringify(drawn.get("equity grown tenfold")!.spec)).toContain('"type":"log"');
    expect(JSON.stringify(drawn.get("equity")!.spec)).not.toContain('"type":"log"');
  });

  test("gives each run a colour, and a dash after six", () => {
    const { wide } = drawn.get("equity of seven runs")!;
    for (const run of [1, 2, 3, 4, 5, 6]) expect(wide).toContain(`stroke="var(--run-${run})"`);
    expect(wide).toMatch(/stroke="var\(--run-1\)"[^>]*stroke-dasharray="6,3"/);
  });

  test("keeps the highest and the lowest of 45,031 points", () => {
    const { spec } = drawn.get("equity of minutes")!;
    const values = [...JSON.stringify(spec).matchAll(/"v":([\d.]+)/g)].map(([, value]) => Number(value));
    expect(Math.max(...values)).toBeGreaterThan(1_000_000);
    expect(values.length).toBeLessThan(10_000);
  });
});

const none = new Float64Array();
const list = (...values: number[]) => Float64Array.from(values);
const noRisk = { level: 0.05, historical: null, normal: null, conditional: null };
const equityOf = (...values: number[]) => {
  const run = equityRun("alpha-1", list(...values));
  return equityChart({ currency: "USD", runs: [run], drawdowns: drawdownsOf(run) });
};
const returnsChartOf = (...values: number[]) =>
  returnsChart({ period: "day", runs: [{ ...nthRun(1), returns: list(...values), valueAtRisk: noRisk }] });
const excursionsOf = (...net: number[]) =>
  excursionsChart({
    currency: "USD",
    grouping: "flat",
    runs: [
      {
        ...{ ...nthRun(1), net: list(...net) },
        mae: list(...net.map((value) => Math.min(value, 0))),
        mfe: list(...net.map((value) => Math.max(value, 0))),
      },
    ],
  });
const profitOf = (...net: number[]) =>
  profitChart({
    currency: "USD",
    by: "symbol",
    runs: [{ ...nthRun(1), groups: net.map((value, key) => ({ key: `S${key}`, net: value, trades: 1 })) }],
  });
const candlesOf = (...close: number[]) =>
  candlesChart({
    runs: [
      {
        ...nthRun(1),
        symbol: "BTC",
        bars: {
          times: list(...close.map((_, index) => index * 60_000)),
          intervalMs: 60_000,
          open: list(...close),
          high: list(...close),
          low: list(...close),
          close: list(...close),
        },
        fills: { times: none, prices: none, quantities: none, isBuy: new Uint8Array() },
      },
    ],
  });
const rollingOf = (...values: number[]) => {
  const times = list(...values.map((_, index) => index * 86_400_000));
  return rollingChart({
    window: 20,
    period: "day",
    runs: [{ ...nthRun(1), times, sharpe: list(...values), volatility: list(...values) }],
  });
};
const exposureOf = (...values: number[]) => {
  const times = list(...values.map((_, index) => index * 86_400_000));
  return exposureChart({
    unit: "USD",
    runs: [{ ...nthRun(1), times, gross: list(...values), net: list(...values) }],
  });
};

describe("a chart of odd data", () => {
  const odd: Readonly<Record<string, readonly number[]>> = {
    "one point": [100],
    "two points": [100, 101],
    "points that are all equal": [100, 100, 100, 100],
    zeros: [0, 0, 0],
    "gains alone": [1, 2, 3, 4],
    "losses alone": [-1, -2, -3, -4],
    "tiny numbers": [1e-9, 3e-9, 2e-9],
    "huge numbers": [1e12, 3e12, 2e12],
    "numbers of all sizes": [1e-9, 1, 1e12],
    "gaps at both ends and within": [Number.NaN, 1, Number.NaN, Number.NaN, 2, 3, Number.NaN],
    "an outlier": [...Array.from({ length: 2000 }, (_, index) => Math.sin(index)), 1e9],
    "one value far from many equal ones": [...new Array(50).fill(0), 1],
    infinities: [1, Number.POSITIVE_INFINITY, 2, Number.NEGATIVE_INFINITY],
    "crossing zero": [3, -2, 1, 0, 5],
  };
  const charts = { equityOf, returnsChartOf, excursionsOf, profitOf, candlesOf, rollingOf, exposureOf };

  test.each(
    Object.entries(charts).flatMap(([chart, make]) =>
      Object.entries(odd).map(
        ([name, values]) => [chart.replace(/(?:Chart)?Of$/, ""), name, make, values] as const,
      ),
    ),
  )("of %s: %s", async (_chart, _name, make, values) => {
    const warn = vi.spyOn(console, "warn");
    expectSound(chartOf(await make(...values)));
    expect(warn).not.toHaveBeenCalled();
  });

  test.each([
    ["equity", () => equityOf(), "no equity points"],
    ["returns", () => returnsChartOf(), "no returns"],
    ["returns that are no numbers", () => returnsChartOf(Number.NaN), "no returns"],
    ["rolling", () => rollingOf(Number.NaN), "no window of 20 days has a figure"],
    ["exposure", () => exposureOf(), "no positions"],
    ["excursions", () => excursionsOf(Number.NaN), "no closed trades with excursions"],
    ["profit", () => profitOf(), "no trades"],
    ["candles", () => candlesOf(), "no bars of BTC"],
    ["candles that are no numbers", () => candlesOf(Number.NaN), "no bars of BTC"],
    [
      "funnel",
      () => funnelChart({ runs: [{ ...nthRun(1), states: [{ state: "FILLED", orders: 0 }] }] }),
      "no orders",
    ],
    [
      "slippage",
      () =>
        slippageChart({
          runs: [
            { ...nthRun(1), groups: [{ type: "LIMIT", reference: "mid", basisPoints: null, fills: 0 }] },
          ],
        }),
      "no fill with a reference price",
    ],
    ["latency", () => latencyChart({ runs: [{ ...nthRun(1), groups: [] }] }), "no orders with both times"],
    ["fees", () => feesChart({ runs: [{ ...nthRun(1), groups: [] }] }), "no fees"],
    [
      "information",
      () =>
        informationChart({
          runs: [
            {
              ...nthRun(1),
              factors: [{ factor: "f", horizons: [{ horizon: 1, ic: null, error: null, n: 0 }] }],
            },
          ],
        }),
      "no factor with an information coefficient",
    ],
    [
      "quantiles",
      () => quantilesChart({ horizon: 1, runs: [{ ...nthRun(1), factors: [] }] }),
      "no factor with quantiles",
    ],
    ["events", () => eventsChart({ runs: [{ ...nthRun(1), events: [] }] }), "no events"],
  ] as const)("of no %s is none, with its reason", async (_name, make, reason) => {
    expect(await make()).toMatchObject({ reason });
  });

  test.each([
    ["one state", () => funnelChart({ runs: [{ ...nthRun(1), states: [{ state: "FILLED", orders: 1 }] }] })],
    [
      "no slippage at all",
      () =>
        slippageChart({
          runs: [{ ...nthRun(1), groups: [{ type: "LIMIT", reference: "mid", basisPoints: 0, fills: 1 }] }],
        }),
    ],
    [
      "no time at all",
      () =>
        latencyChart({
          runs: [
            {
              ...nthRun(1),
              groups: [{ measure: "m", type: "t", orders: 1, quantiles: { p50: 0, p95: 0, p99: 0 } }],
            },
          ],
        }),
    ],
    [
      "no fees but rebates",
      () =>
        feesChart({
          runs: [{ ...nthRun(1), groups: [{ venue: "v", currency: "USD", fees: 0, rebates: 0.5 }] }],
        }),
    ],
    [
      "one horizon without an error",
      () =>
        informationChart({
          runs: [
            {
              ...nthRun(1),
              factors: [{ factor: "f", horizons: [{ horizon: 1, ic: 1, error: null, n: 2 }] }],
            },
          ],
        }),
    ],
    [
      "one quantile",
      () =>
        quantilesChart({
          horizon: 1,
          runs: [{ ...nthRun(1), factors: [{ factor: "f", quantiles: [{ quantile: 1, mean: 0, n: 1 }] }] }],
        }),
    ],
    [
      "one event",
      () =>
        eventsChart({
          runs: [{ ...nthRun(1), events: [{ time: 0, kind: "k", severity: "odd", message: "" }] }],
        }),
    ],
    ["a thousand symbols", () => profitOf(...Array.from({ length: 1000 }, (_, index) => Math.sin(index)))],
    [
      "thirty venues",
      () =>
        feesChart({
          runs: [
            {
              ...nthRun(1),
              groups: Array.from({ length: 30 }, (_, index) => ({
                venue: `v${index}`,
                currency: "USD",
                fees: index,
                rebates: index,
              })),
            },
          ],
        }),
    ],
    [
      "twenty factors",
      () =>
        informationChart({
          runs: [
            {
              ...nthRun(1),
              factors: Array.from({ length: 20 }, (_, index) => ({
                factor: `f${index}`,
                horizons: [1, 2, 3, 4].map((horizon) => ({ horizon, ic: 0.01 * index, error: 0.01, n: 9 })),
              })),
            },
          ],
        }),
    ],
  ] as const)("of %s", async (_name, make) => {
    expectSound(chartOf(await make()));
  });
});

test("characters that hide, turn or end text are shown as escapes in a drawing", async () => {
  const venue = "a\u0001\u001b[31m\u202eb\u2028";
  const chart = await feesChart({
    runs: [{ ...nthRun(1), groups: [{ venue, currency: "USD", fees: 2, rebates: 1 }] }],
  });
  if (!("wide" in chart)) throw new Error("there is no chart");
  for (const svg of [chart.wide, chart.narrow]) {
    expect(svg).toContain("\\u001b[31m\\u202eb");
    expect(svg).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  }
});
