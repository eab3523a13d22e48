import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { request } from "undici";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { tables } from "../../src/model/profile/table.ts";
import { canonicalLine } from "../../src/row/line.ts";
import { type IndependentGateway, startIndependentGateway } from "../fixtures/source/independent-gateway.ts";
import { makeBars } from "../fixtures/source/independent-rows.ts";

let gateway: IndependentGateway;
beforeAll(async () => {
  gateway = await startIndependentGateway({ facts: true, cap: 700 });
});
afterAll(() => gateway.close());

const get = (path: string) => answerOf(gateway.url + path);

async function answerOf(url: string): Promise<{ status: number; type: string; text: string }> {
  const { statusCode, headers, body } = await request(url);
  return { status: statusCode, type: String(headers["content-type"]), text: await body.text() };
}

function rowsPath(table: { path: string }, run: string, more = ""): string {
  return `${table.path}?instance=momentum-1&run_id=${encodeURIComponent(run)}${more}`;
}

describe.each(tables.map((table) => [table.name, table] as const))("%s", (name, table) => {
  test("its lines, made without the model, are the model's canonical lines in key order", () => {
    for (const run of gateway.runs("momentum-1")) {
      const lines = gateway.lines("momentum-1", run, name);
      expect(lines.length).toBeGreaterThan(0);
      const rows = lines.map((line) => JSON.parse(line) as Record<string, string | number>);
      expect(rows.map((row) => canonicalLine(table, row))).toEqual(lines);
      const keys = rows.map((row) => [BigInt(row.ts_event!), BigInt(row.seq!)] as const);
      for (const [index, key] of keys.entries()) {
        const before = keys[index - 1];
        expect(
          before === undefined || before[0] < key[0] || (before[0] === key[0] && before[1] < key[1]),
        ).toBe(true);
      }
    }
  });

  test("rows are answered up to the cap, and the windows of an answer join without gap or overlap", async () => {
    const [run = ""] = gateway.runs("momentum-1");
    const lines = gateway.lines("momentum-1", run, name);
    const whole = await get(rowsPath(table, run));
    expect(whole.type).toBe("application/x-ndjson");
    expect(whole.text).toBe(
      lines
        .slice(0, 700)
        .map((line) => `${line}\n`)
        .join(""),
    );

    const middle = (JSON.parse(lines[Math.floor(Math.min(lines.length, 700) / 2)]!) as { ts_event: string })
      .ts_event;
    const halves = await Promise.all([
      get(rowsPath(table, run, `&to=${middle}`)),
      get(rowsPath(table, run, `&from=${middle}`)),
    ]);
    const split = lines.findIndex((line) => (JSON.parse(line) as { ts_event: string }).ts_event === middle);
    const expected = [lines.slice(0, split), lines.slice(split, split + 700)].map((half) =>
      half.map((line) => `${line}\n`).join(""),
    );
    expect(halves.map(({ text }) => text)).toEqual(expected);
  });

  test("a filter of the matrix keeps the rows that match, another one is refused", async () => {
    const [run = ""] = gateway.runs("momentum-1");
    for (const filter of ["resource_key", "symbol", "venue", "account", "portfolio"] as const) {
      const answer = await get(rowsPath(table, run, `&${filter}=nothing-has-this`));
      expect([filter, answer.status]).toEqual([filter, table.filters.includes(filter) ? 200 : 400]);
      if (answer.status === 200) expect(answer.text).toBe("");
    }
  });
});

test("storage facts count the rows that the lines hold", async () => {
  const answer = await get("/history/storage?instance=momentum-1&run_id=run-2");
  const facts = JSON.parse(answer.text) as { tables: { table: string; rows: string }[] };
  expect(Object.fromEntries(facts.tables.map(({ table, rows }) => [table, Number(rows)]))).toEqual(
    Object.fromEntries(tables.map(({ name }) => [name, gateway.lines("momentum-1", "run-2", name).length])),
  );
});

test("without facts the three optional documents are unknown routes", async () => {
  const literal = await startIndependentGateway({ facts: false });
  try {
    for (const path of ["runs", "resources", "storage"]) {
      const { statusCode, body } = await request(`${literal.url}/history/${path}?instance=momentum-1`);
      expect([statusCode, await body.json()]).toMatchObject([
        404,
        { ok: false, error: { code: "route_not_found" } },
      ]);
    }
  } finally {
    await literal.close();
  }
});

test("unknown runs, unknown instances and the word current are not found", async () => {
  for (const [query, code] of [
    ["instance=momentum-1&run_id=current", "run_not_found"],
    ["instance=nobody&run_id=run-2", "instance_not_found"],
  ] as const) {
    const { status, text } = await get(`/history/fills?${query}`);
    expect([status, JSON.parse(text)]).toMatchObject([404, { error: { code } }]);
  }
});

describe("a run that changes", () => {
  let changing: IndependentGateway;
  beforeEach(async () => {
    changing = await startIndependentGateway({ facts: true, made: makeBars(60) });
  });
  afterEach(() => changing.close());
  const asked = async (path: string) => JSON.parse((await answerOf(changing.url + path)).text);
  const entryOf = async (run: string) => {
    const { runs } = await asked("/history/runs?instance=momentum-1");
    return runs.find(({ run_id }: { run_id: string }) => run_id === run);
  };
  const fillsOf = async (more = "") => {
    const { tables: facts } = await asked(`/history/storage?instance=momentum-1&run_id=run-2${more}`);
    return facts.find(({ table }: { table: string }) => table === "fills");
  };

  test("goes on and ends: status, end, final and version say so, and facts count what is there within bounds", async () => {
    const run = changing.run("run-2");
    const whole = changing.lines("momentum-1", "run-2", "fills").length;
    const finished = await entryOf("run-2");
    run.growTo(run.at(500));
    const running = await entryOf("run-2");
    expect(running).toMatchObject({ status: "RUNNING", ts_ended: "0", final: false });
    expect(running.ts_started).toBe(finished.ts_started);
    const half = changing.lines("momentum-1", "run-2", "fills").length;
    expect(half).toBeLessThan(whole);
    expect(await fillsOf()).toMatchObject({ rows: `${half}`, final: false });
    const { max_ts_event } = await fillsOf();
    expect(await fillsOf(`&from=${max_ts_event}`)).toMatchObject({
      ...{ rows: "2", min_ts_event: max_ts_event, max_ts_event },
    });
    run.finish();
    const ended = await entryOf("run-2");
    expect(ended).toEqual({ ...finished, storage_version: ended.storage_version });
    const versions = [finished, running, ended].map(({ storage_version }) => storage_version);
    expect(new Set(versions).size).toBe(3);
    expect(await fillsOf()).toMatchObject({ rows: `${whole}`, final: true });
  });

  test("loses its first rows, its rows as a whole by another run, or is gone", async () => {
    const run = changing.run("run-2");
    const lines = changing.lines("momentum-1", "run-2", "bars");
    const { ts_started } = await entryOf("run-2");
    run.forget(run.at(300));
    const kept = changing.lines("momentum-1", "run-2", "bars");
    expect(kept.length).toBeGreaterThan(0);
    expect(kept).toEqual(lines.slice(-kept.length));
    expect((await entryOf("run-2")).ts_started).toBe(ts_started);
    run.reset(makeBars(70).slice(65));
    expect((await entryOf("run-2")).ts_started).not.toBe(ts_started);
    changing.drop("run-2");
    expect(await entryOf("run-2")).toBeUndefined();
    const { status, text } = await answerOf(`${changing.url}/history/fills?instance=momentum-1&run_id=run-2`);
    expect([status, JSON.parse(text)]).toMatchObject([404, { error: { code: "run_not_found" } }]);
  });

  test("may lack a table: its own route says so, and facts leave it out where there is no model of it", async () => {
    const run = changing.run("run-2");
    run.refusals.set("fills", { status: 409, code: "history_unavailable" });
    const path = "/history/fills?instance=momentum-1&run_id=run-2";
    expect((await answerOf(changing.url + path)).status).toBe(409);
    expect(await fillsOf()).toBeUndefined();
    run.refusals.set("fills", { status: 404, code: "resource_not_found" });
    expect((await answerOf(changing.url + path)).status).toBe(404);
    expect(await fillsOf()).toBeDefined();
  });
});

test("ranges of more than so long are refused, or cut down from their beginning", async () => {
  const hour = 3_600_000_000_000n;
  for (const longer of ["refused", "cutDown"] as const) {
    const short = await startIndependentGateway({ facts: false, longest: { ns: hour, longer } });
    try {
      const lines = short.lines("momentum-1", "run-2", "bars");
      const from = BigInt((JSON.parse(lines[0]!) as { ts_event: string }).ts_event);
      const asked = (to: bigint | "") =>
        answerOf(
          `${short.url}/history/bars?instance=momentum-1&run_id=run-2&from=${from}${to && `&to=${to}`}`,
        );
      const within = await asked(from + hour);
      expect(within.text).toBe(
        lines
          .slice(0, 60)
          .map((line) => `${line}\n`)
          .join(""),
      );
      for (const to of [from + 2n * hour, ""] as const) {
        const { status, text } = await asked(to);
        if (longer === "refused") expect(status).toBe(400);
        else expect(text).toBe(within.text);
      }
    } finally {
      await short.close();
    }
  }
});

test("an unknown run, and no rows, can be empty answers", async () => {
  const literal = { facts: false, unknownRuns: "empty" } as const;
  for (const noContent of [false, true]) {
    const lax = await startIndependentGateway({ ...literal, noContent });
    try {
      lax.run("run-2").empty("factors");
      for (const path of [
        "fills?instance=momentum-1&run_id=nothing",
        "factors?instance=momentum-1&run_id=run-2",
      ]) {
        const { status, text } = await answerOf(`${lax.url}/history/${path}`);
        expect([path, status, text]).toEqual([path, noContent ? 204 : 200, ""]);
      }
    } finally {
      await lax.close();
    }
  }
});

test("bars are those of the file given", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-bars-"));
  try {
    const file = join(folder, "bars.csv.gz");
    await writeFile(
      file,
      gzipSync(
        "timestamp,open,high,low,close,volume\n2021-12-31 23:01:00.000001,1.50,2.0,0.0100,1,12.3400\n",
      ),
    );
    const other = await startIndependentGateway({ facts: true, bars: file });
    try {
      expect(other.lines("momentum-1", "run-2", "bars").map((line) => JSON.parse(line))).toMatchObject([
        { ts_event: "1640991660000001000", open: "1.5", high: "2", low: "0.01", close: "1", volume: "12.34" },
      ]);
    } finally {
      await other.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
