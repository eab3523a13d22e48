// @module-tag slow
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type MetricsDocument,
  metricsJsonSchema,
  metricsSchema,
} from "../../src/analytics/metrics/metrics-document.ts";
import { openArchive } from "../../src/archive/archive.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { wallClock } from "../../src/model/time.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject } from "../fixtures/command/project.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
let runs: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-metrics-"));
  const source = await openSimulator({ runs: 2, rows: 3_000, failed: 0, cacheDir: join(folder, "worlds") });
  const archive = await openArchive(join(folder, "archive"), { create: true });
  runs = [];
  for (const { instanceId, runIds } of await source.instances()) {
    for (const runId of runIds) {
      runs.push(`${instanceId}/${runId}`);
      await archiveRun({
        source,
        archive,
        run: { instanceId, runId },
        settings: {},
        clock: wallClock,
        retry: quickRetry(),
        signal: new AbortController().signal,
        tool: "test",
        duckdb: sharedDuckDB,
      });
    }
  }
}, 60_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

const metrics = (...more: string[]) => runInside(["metrics", "--archive", join(folder, "archive"), ...more]);

const known = new Map<string, Promise<MetricsDocument>>();

/** A document that is only read: made once. */
function documentOf(...more: string[]): Promise<MetricsDocument> {
  const key = JSON.stringify(more);
  const document = known.get(key) ?? newDocument(...more);
  known.set(key, document);
  return document;
}

async function newDocument(...more: string[]): Promise<MetricsDocument> {
  const { status, stdout, stderr } = await metrics(...more, "--json");
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return metricsSchema.parse(JSON.parse(stdout));
}

describe("the figures of runs", () => {
  test("have no table where no row has a value, but the reason", async () => {
    const { stdout } = await metrics(runs[0]!);
    expect(stdout).toContain("\n  quantiles\n  n/a (no time has 5 symbols with both factor and return): ");
    expect(stdout).not.toMatch(/^ {2}signal 1 bar Q1 /m);
  });

  test("are a document that the published schema accepts, with no number that is none", async () => {
    const { status, stdout } = await metrics(...runs, "--session", "bars", "--window", "20", "--json");
    const document = JSON.parse(stdout);
    const printed = await runInside(["schema", "metrics"]);
    expect({ status, schema: JSON.parse(printed.stdout) }).toEqual({
      status: 0,
      schema: metricsJsonSchema(),
    });
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
    expect(ajv.validate(JSON.parse(printed.stdout), document), ajv.errorsText()).toBe(true);
    expect(stdout).not.toMatch(/NaN|Infinity|-0[,\n]/);
    expect(document.runs.map(({ instance, run }: Record<string, string>) => `${instance}/${run}`)).toEqual(
      runs,
    );
    const names = document.runs[0].sections.map(({ name }: { name: string }) => name);
    expect(names).toEqual([
      ...["performance", "drawdowns", "monthly", "rolling", "trades", "execution", "factors"],
    ]);
  });

  test("are the same bytes every time", async () => {
    const args = [runs[0]!, "--session", "bars", "--json"];
    const [first, second] = [await metrics(...args), await metrics(...args)];
    expect(first.stdout.length).toBeGreaterThan(1_000);
    expect(second.stdout).toBe(first.stdout);
  });

  test("of a run are the same alone and beside another", async () => {
    const [alone, both] = [await documentOf(runs[1]!), await documentOf(...runs)];
    expect(both.runs[1]).toEqual(alone.runs[0]);
  });

  test("are those that a query of the macro gives", async () => {
    const [instance, run] = runs[0]!.split("/");
    const asked = await runInside([
      ...["query", "--archive", join(folder, "archive"), "--threads", "1", "--format", "json"],
      `SELECT metric, value, reason FROM performance('${instance}', '${run}', session := 'bars')`,
    ]);
    const rows = JSON.parse(asked.stdout) as { metric: string; value: number | null; reason: string }[];
    const document = await documentOf(runs[0]!, "--session", "bars");
    const { figures } = document.runs[0]!.sections[0]!.groups[0]!;
    expect(rows.length).toBeGreaterThan(30);
    expect(Object.keys(figures).sort()).toEqual(rows.map(({ metric }) => metric).sort());
    for (const { metric, value } of rows) {
      const told = figures[metric]!.value;
      // a plan over other runs as well may add up in another order
      if (value === null) expect([metric, told]).toEqual([metric, null]);
      else expect(Math.abs(Number(told) - value), metric).toBeLessThanOrEqual(1e-12 * Math.abs(value));
    }
  });

  test("of trades follow the grouping, which the heading names, and keep the profit", async () => {
    const told = await Promise.all([
      documentOf(runs[0]!),
      ...(["order", "match"] as const).map((group) => documentOf(runs[0]!, "--group", group)),
    ]);
    const trades = told.map(({ runs: [run] }) => run!.sections.find(({ name }) => name === "trades")!);
    expect(trades.map(({ conventions }) => conventions)).toEqual([
      "grouped from flat to flat (flat), net of fees",
      "grouped by closing order (order), net of fees",
      "grouped by single match (match), net of fees",
    ]);
    const values = (name: string) => trades.map(({ groups }) => groups[0]!.figures[name]!.value);
    expect(new Set(values("net_pnl")).size).toBe(1);
    expect(new Set(values("hit_rate")).size).toBe(3);
  });

  test("of trades say in which order fills of one instant count, which reconcile finds", async () => {
    const found = await runInside(["reconcile", "--archive", join(folder, "archive"), runs[0]!, "--json"]);
    const { fillOrder } = JSON.parse(found.stdout).runs[0];
    const words = { key: "keys", trade_id: "trade ids" }[String(fillOrder)];
    expect(words).toBeDefined();
    const notesOf = async (...more: string[]) => {
      const document = await documentOf(runs[0]!, ...more);
      return document.runs[0]!.sections.find(({ name }) => name === "trades")!.notes;
    };
    expect(await notesOf()).toContain(
      `fills with the same timestamp are taken in the order of their ${words} (chosen automatically)`,
    );
    expect(await notesOf("--fill-order", "key")).toContain(
      "fills with the same timestamp are taken in the order of their keys",
    );
  });

  test("are held against the Sharpe ratio and the return that are asked for", async () => {
    const figuresOf = async (...more: string[]) => {
      const document = await documentOf(runs[0]!, "--session", "bars", ...more);
      return document.runs[0]!.sections[0]!.groups[0]!.figures;
    };
    const [plain, asked] = [
      await figuresOf(),
      await figuresOf("--psr-benchmark", "1", "--omega-return", "5%"),
    ];
    expect(Number(asked.psr!.value)).toBeLessThan(Number(plain.psr!.value));
    expect(Number(asked.omega!.value)).toBeLessThan(Number(plain.omega!.value));
    expect(asked.omega).toMatchObject({ convention: expect.stringContaining("required 0.05 a year") });
  });
});

describe("the text", () => {
  test("has a column a run, no line longer than 80 characters, and reasons of what is null", async () => {
    const { status, stdout } = await runInside(["metrics", "--archive", join(folder, "archive"), ...runs], {
      columns: 80,
      stdoutIsTerminal: true,
    });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^\[1\] .*\n\[2\] /);
    expect(stdout).toMatch(/^ +Sharpe +\S+ +\S+$/m);
    expect(stdout).toMatch(/^Trades: grouped from flat to flat \(flat\), net of fees$/m);
    expect(stdout).toContain("n/a (no benchmark): Alpha; Beta");
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});

test("a terminal of 40 columns has no longer line of the text", async () => {
  const args = ["metrics", "--archive", join(folder, "archive"), ...runs];
  const { status, stdout } = await runInside(args, { columns: 40, stdoutIsTerminal: true });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^ {2}(?=\S).*\n {4}SIMEX/m);
  expect(stdout.split("\n").filter((line) => line.length > 40)).toEqual([]);
});

describe("wrong usage is refused with what is right", () => {
  test.each([
    [["--session", "utcc"], "did you mean utc?"],
    [["--session", "America/New_Yrk 17:00"], "did you mean America/New_York 17:00?"],
    [["--session", "America/New_York 25:00"], 'not at "25:00"'],
    [["--session", "utc 17:00"], "did you mean UTC 17:00?"],
    [["--session", "bar"], '"bar" is not a known time zone (did you mean bars?)'],
    [["--periods", "dat"], "did you mean data?"],
    [["--periods", "0"], "--periods must be a number"],
    [["--rf", "much"], "--rf must be a yearly rate"],
    [["--rf", "2"], "(did you mean 2%?)"],
    [["--window", "1"], "--window must be a whole number from 2"],
    [["--group", "flt"], "flat, order, match"],
    [["--group", "flt"], "Did you mean flat?"],
    [["--fill-order", "trade"], "auto, key, trade_id"],
    [["--psr-benchmark", "high"], "--psr-benchmark must be a Sharpe ratio"],
    [["--omega-return", "x"], "--omega-return must be a yearly rate"],
    [["--fill", "--session", "bars"], "--fill adds days"],
    [["--benchmark", "NONE"], 'the run has no bars of "NONE"'],
    [["--benchmark", "none.csv"], "none.csv"],
  ])("%j", async (more, message) => {
    const { status, stdout, stderr } = await metrics(runs[0]!, ...more);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(message);
  });

  test("a run that the archive has not: the nearest that it has", async () => {
    const { status, stderr } = await metrics(`${runs[0]!.slice(0, -1)}9`);
    expect(status).toBe(2);
    expect(stderr).toContain(`Did you mean ${runs[0]}?`);
  });

  test.each([
    ["timestamp,prise\n2022-01-01,1\n", 'did you mean "prise"', "line 1"],
    ["time;close\n2022-01-01;1\n", 'its first line names "time;close"', "line 1"],
    ["timestamp,price\n1640995200,1\n1641081600,2\n", "a number is UNIX nanoseconds", "line 2"],
    ["timestamp,price\n2022-01-01,1\nsoon,2\n", "not a time", "line 3"],
    ["timestamp,price\n2022-01-01,1\n2022-01-02,-2\n", "not a price above zero", "line 3"],
    ["timestamp,price\n2022-01-02,1\n2022-01-01,2\n", "not later than the one before", "line 3"],
    ["timestamp,price\n2022-01-01,1\n", "fewer than two prices", ""],
    ["timestamp,price\n1999-01-01,1\n1999-01-02,2\n", "does not overlap", "line 2"],
    ["timestamp,price\n2199-01-01,1\n2199-01-02,2\n", "does not overlap", "line 2"],
  ])("the benchmark %j", async (text, message, place) => {
    const file = join(folder, "wrong.csv");
    await writeFile(file, text);
    const { status, stderr } = await metrics(runs[0]!, "--benchmark", file);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(file);
    expect(stderr).toContain(place);
  });
});

test("a benchmark that is the run itself: beta 1 and alpha 0", async () => {
  const [instance, run] = runs[0]!.split("/");
  const file = join(folder, "own.csv");
  const { stdout } = await runInside([
    ...["query", "--archive", join(folder, "archive"), "--format", "csv"],
    `SELECT epoch_ns(ts) AS timestamp, wealth AS price
     FROM session_returns('${instance}', '${run}', session := 'bars', base := 'first')`,
  ]);
  await writeFile(file, stdout);
  const document = await documentOf(
    ...[runs[0]!, "--session", "bars", "--base", "first", "--benchmark", file],
  );
  const { figures } = document.runs[0]!.sections[0]!.groups[0]!;
  expect(figures.beta!.value).toBeCloseTo(1, 9);
  expect(figures.alpha!.value).toBeCloseTo(0, 9);

  // its first half is compared with that half alone, and the command says so
  const lines = stdout.trimEnd().split("\n");
  const half = Math.ceil(lines.length / 2);
  await writeFile(file, `${lines.slice(0, half).join("\n")}\n`);
  const asked = [runs[0]!, "--session", "bars", "--base", "first", "--benchmark", file];
  const shorter = (await newDocument(...asked)).runs[0]!.sections[0]!.groups[0]!.figures.beta!;
  expect(shorter).toMatchObject({ value: expect.closeTo(1, 9), n: half - 2 });
  const { stdout: told } = await metrics(...asked);
  expect(told.replaceAll(/\s+/g, " ")).toMatch(
    /the benchmark's last price is from \S+: \d+ later returns of the run have nothing to compare with/,
  );
});

test("tables that are not proven are refused, unless that is allowed: then it is said at the top", async () => {
  const built = await buildArchive([
    {
      instanceId: "a",
      runId: "1",
      tables: { equity: { state: "INCOMPLETE", rows: 3 } },
    },
  ]);
  try {
    const refused = await runInside(["metrics", "--archive", built.dir, "a/1"]);
    expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status: 4, stdout: "" });
    expect(refused.stderr).toContain("equity of a/1 (INCOMPLETE)");
    expect(refused.stderr).toContain("--allow-incomplete");
    const allowed = await runInside(["metrics", "--archive", built.dir, "a/1", "--allow-incomplete"]);
    expect(allowed.status, allowed.stderr).toBe(0);
    expect(allowed.stdout).toMatch(/^a\/1 .*\n.*NOT PROVEN, rows may be missing: equity \(INCOMPLETE\)$/m);
    expect(allowed.stdout).toContain("fills was never archived for this run");
    expect(allowed.stdout).toContain("events were never archived");
    expect(allowed.stdout).not.toMatch(/NaN|Infinity|-0\.0/);
  } finally {
    await built.dispose();
  }
});

test("where bars alone are not proven, what needs none is printed, and the status is 4", async () => {
  const complete = { state: "COMPLETE", rows: 3 } as const;
  const bars = { state: "INCOMPLETE", rows: 3 } as const;
  const built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { equity: complete, fills: complete, bars } },
  ]);
  try {
    const { status, stdout, stderr } = await runInside([
      "metrics",
      "--archive",
      built.dir,
      "a/1",
      "--base",
      "first",
    ]);
    expect(status).toBe(4);
    expect(stdout).toContain("sections are missing, not proven: bars (INCOMPLETE)");
    expect(stdout).toMatch(/^Performance: .*\n(?:.*\n)* {2}Total return/m);
    expect(stdout).toMatch(/^Trades: .*\n {2}needs rows that are not proven: bars \(INCOMPLETE\)$/m);
    expect(stderr).toContain("bars of a/1 (INCOMPLETE)");
    expect(stderr).toContain("--allow-incomplete");
  } finally {
    await built.dispose();
  }
});

describe("runs in two currencies", () => {
  let archive: string;
  let named: string;
  beforeAll(async () => {
    archive = join(folder, "currencies");
    const source = await openSimulator({
      ...{
        runs: 1,
        rows: 6_000,
        failed: 0,
        symbols: 2,
        currencies: ["USD", "EUR"],
        cacheDir: join(folder, "two"),
      },
    });
    const [instance] = await source.instances();
    const run = { instanceId: instance!.instanceId, runId: instance!.runIds[0]! };
    named = `${run.instanceId}/${run.runId}`;
    await archiveRun({
      ...{
        source,
        run,
        settings: {},
        clock: wallClock,
        retry: quickRetry(),
        tool: "test",
        duckdb: sharedDuckDB,
      },
      archive: await openArchive(archive, { create: true }),
      signal: new AbortController().signal,
    });
  }, 60_000);

  const ratesOf = async (text: string) => {
    const file = join(folder, "rates.csv");
    await writeFile(file, text);
    return file;
  };
  const asked = (...more: string[]) => runInside(["metrics", "--archive", archive, named, ...more]);

  test("are added only with rates, at those of each instant", async () => {
    const apart = await asked("--json", "--session", "bars");
    expect(apart.status, apart.stderr).toBe(0);
    const currencies = ({ stdout }: { readonly stdout: string }) =>
      (JSON.parse(stdout) as MetricsDocument).runs[0]!.sections[0]!.groups.map(({ account, currency }) => [
        account,
        currency,
      ]);
    expect(currencies(apart).map(([, currency]) => currency)).toEqual(["EUR", "USD"]);
    const file = await ratesOf("timestamp,currency,base,rate\n2021-12-31,EUR,USD,1.25\n");
    const together = await asked("--json", "--session", "bars", "--rates", file);
    expect(together.status, together.stderr).toBe(0);
    expect(currencies(together)).toContainEqual(["all accounts", "USD"]);
    const groups = (JSON.parse(together.stdout) as MetricsDocument).runs[0]!.sections[0]!.groups;
    expect(groups.filter(({ account }) => account !== "all accounts")).toEqual(
      (JSON.parse(apart.stdout) as MetricsDocument).runs[0]!.sections[0]!.groups,
    );
    // at a rate that does not change, the total return is that of the sums
    const sums = await runInside([
      ...["query", "--archive", archive, "--format", "json"],
      `SELECT sum(value * if(currency = 'EUR', 1.25, 1)) FILTER (WHERE i = (SELECT max(i) FROM p q WHERE q.currency = p.currency))
         / sum(value * if(currency = 'EUR', 1.25, 1)) FILTER (WHERE i = 0) - 1 AS ret
       FROM session_points('${named.replace("/", "', '")}', session := 'bars') p`.replace(
        /FROM p q/,
        `FROM session_points('${named.replace("/", "', '")}', session := 'bars') q`,
      ),
    ]);
    const total = groups.find(({ account }) => account === "all accounts")!;
    expect(Number(total.figures.total_return!.value)).toBeCloseTo(JSON.parse(sums.stdout)[0].ret, 12);
    expect(together.stdout).toContain("EUR of 2021-12-31T00:00:00.000000000Z");
  });

  test.each([
    [
      "timestamp,currency,base,rate\n2030-01-01,EUR,USD,1.25\n",
      "there is no rate of EUR at or before 2022-01-01T",
      "hint: Add one",
    ],
    [
      "timestamp,currency,base,rate\n2021-01-01,EUR,USD,1.25\n2021-01-01,GBP,EUR,1.25\n",
      "one base currency: USD, not EUR",
      "line 3",
    ],
    ["timestamp,currency,base,rate\n2021-01-01,EUR,USD,-1\n", "not a rate above zero", "line 2"],
    [
      "timestamp,currency,base,rate\n2021-01-02,EUR,USD,1\n2021-01-01,EUR,USD,1\n",
      "not later than the one before",
      "line 3",
    ],
    ["timestamp,curency,base,rate\n", 'did you mean "curency"', "line 1"],
    ["timestamp,currency,base,rate,note\n", 'a column "note"', "line 1"],
    ["timestamp,currency,base,rate\n", "no rates", ""],
  ])("rates that cannot be used: %j", async (text, message, place) => {
    const file = await ratesOf(text);
    const { status, stderr } = await asked("--rates", file);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(place);
    expect(stderr.replaceAll("\n", "")).toContain("rates.csv");
  });
});

test("docs/metrics.md names every figure", async () => {
  const text = await readFile(inProject("docs/metrics.md"), "utf8");
  const document = await documentOf(runs[0]!, "--window", "5");
  for (const { groups } of document.runs[0]!.sections) {
    for (const name of Object.keys(groups[0]!.figures)) expect(text).toContain(`\`${name}\``);
  }
});
