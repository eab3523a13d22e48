// @module-tag slow
import { readFile, truncate, unlink, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { committedParquet } from "../../src/analytics/files/committed-parquet.ts";
import { openQuery, type Query, type QueryOptions } from "../../src/analytics/query/query.ts";
import type { TextFormat } from "../../src/analytics/render/format.ts";
import { render } from "../../src/analytics/render/render.ts";
import { manifestText } from "../../src/archive/manifest/manifest.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let query: Query;

beforeAll(async () => {
  built = await buildArchive(
    [
      {
        instanceId: "a",
        runId: "12",
        tables: { fills: { state: "COMPLETE", rows: 3 }, bars: { state: "OPEN", rows: 2 } },
      },
      { instanceId: "a", runId: "2026-01-01", tables: { fills: { state: "INCOMPLETE", rows: 5 } } },
      {
        instanceId: "b/ü",
        runId: "x",
        tables: { factors: { state: "COMPLETE", rows: 2 }, order_book: { state: "COMPLETE", rows: 1 } },
      },
    ],
    "odd [name] * 'quoted'",
  );
  query = await openQuery(built.archive);
});

afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await built.dispose();
});

async function answer(sql: string, format: TextFormat = "ndjson", from = query): Promise<string> {
  let text = "";
  for await (const part of render(await from.run(sql), format)) text += part;
  return text;
}

async function answerWith(options: QueryOptions, sql: string): Promise<string> {
  await using other = await openQuery(built.archive, options);
  return await answer(sql, "ndjson", other);
}

describe("views", () => {
  it("show COMPLETE and OPEN tables, and others only when allowed", async () => {
    expect(await answer("SELECT count(*) AS n FROM fills")).toBe('{"n":3}\n');
    expect(await answer("SELECT count(*) AS n FROM bars")).toBe('{"n":2}\n');
    expect(await answerWith({ allowIncomplete: true }, "SELECT count(*) AS n FROM fills")).toBe('{"n":8}\n');
  });

  it("are there, empty and typed, for tables without any file", async () => {
    const columns =
      "SELECT column_type AS t FROM (DESCRIBE equity) WHERE column_name IN ('seq', 'ts_event', 'cash')";
    expect(await answer("SELECT * FROM equity")).toBe("");
    expect(await answer(columns)).toBe('{"t":"UBIGINT"}\n{"t":"TIMESTAMP_NS"}\n{"t":"DECIMAL(18,9)"}\n');
  });

  it("with doubles exist beside those with exact columns only", async () => {
    expect(await answer("SELECT typeof(price) AS t, price AS p FROM fills_f LIMIT 1")).toBe(
      '{"t":"DOUBLE","p":123456789}\n',
    );
    await expect(answer("SELECT * FROM factors_f")).rejects.toMatchObject({ code: "query_invalid" });
  });

  it("keep ids that look like numbers or dates as text", async () => {
    expect(await answer("SELECT DISTINCT run_id AS r, typeof(run_id) AS t FROM fills")).toBe(
      '{"r":"12","t":"VARCHAR"}\n',
    );
  });

  it("have one row a run in runs, with states and rows of every table", async () => {
    const sql =
      "SELECT instance_id, run_id, state, started, fills_state, fills_rows, equity_rows FROM runs ORDER BY ALL";
    expect((await answer(sql)).split("\n")).toEqual([
      '{"instance_id":"a","run_id":"12","state":"INCOMPLETE","started":"2022-01-01T00:01:00.000000001Z","fills_state":"COMPLETE","fills_rows":3,"equity_rows":null}',
      '{"instance_id":"a","run_id":"2026-01-01","state":"INCOMPLETE","started":"2022-01-01T00:01:00.000000001Z","fills_state":"INCOMPLETE","fills_rows":0,"equity_rows":null}',
      '{"instance_id":"b/ü","run_id":"x","state":"COMPLETE","started":"2022-01-01T00:01:00.000000001Z","fills_state":null,"fills_rows":null,"equity_rows":null}',
      "",
    ]);
  });
});

describe("times", () => {
  it("are timestamps to the nanosecond in every column", async () => {
    const types =
      "SELECT typeof(started) AS s, typeof(horizon) AS h, typeof(committed_at) AS c FROM runs LIMIT 1";
    expect(await answer(types)).toBe('{"s":"TIMESTAMP_NS","h":"TIMESTAMP_NS","c":"TIMESTAMP_NS"}\n');
    expect(await answer("SELECT DISTINCT committed_at AS c FROM runs WHERE committed_at > started")).toBe(
      '{"c":"2026-01-01T00:00:01.000000000Z"}\n',
    );
  });

  it("that no timestamp holds are left out, and break no other statement", async () => {
    const one = await buildArchive([
      { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 1 } } },
    ]);
    try {
      const manifest = (await one.archive.manifest({ instanceId: "a", runId: "1" }))!;
      manifest.run.started = "9223372036854775807";
      manifest.run.ended = "-9223372036854775808";
      manifest.committedAt = "some day";
      await writeFile(one.archive.layout.manifestFile(manifest), manifestText(manifest));
      await using other = await openQuery(one.archive);
      expect(await answer("SELECT started, ended, committed_at FROM runs", "csv", other)).toBe(
        "started,ended,committed_at\n,,\n",
      );
      expect(await answer("SELECT count(*) AS n FROM fills", "ndjson", other)).toBe('{"n":1}\n');
    } finally {
      await one.dispose();
    }
  });
});

describe("formats", () => {
  it("keep decimals, nanoseconds and 64-bit integers exact in JSON", async () => {
    expect(await answer("SELECT seq, ts_event, price, fee FROM fills ORDER BY seq LIMIT 1", "json")).toBe(
      '[\n{"seq":0,"ts_event":"2022-01-01T00:01:00.000000001Z","price":"123456789.000000001","fee":null}\n]\n',
    );
    expect(
      await answer("SELECT snapshot_id, 9007199254740991 AS a, 9007199254740993 AS b FROM order_book"),
    ).toBe('{"snapshot_id":"18446744073709551615","a":9007199254740991,"b":"9007199254740993"}\n');
    expect(await answer("SELECT value FROM factors ORDER BY seq")).toBe('{"value":"NaN"}\n{"value":0.25}\n');
    expect(await answer("SELECT [1.50, NULL] AS l, {'k': 'v'} AS s, map {1: true} AS m")).toBe(
      '{"l":["1.50",null],"s":{"k":"v"},"m":[{"key":1,"value":true}]}\n',
    );
    expect(await answer("SELECT TIMESTAMP '2022-01-01 01:02:03.000004' AS a, DATE '2022-01-01' AS d")).toBe(
      '{"a":"2022-01-01T01:02:03.000004Z","d":"2022-01-01"}\n',
    );
    expect(await answer("SELECT * FROM fills WHERE false", "json")).toBe("[]\n");
  });

  it("tell NULL from the empty string in CSV, and quote what needs it", async () => {
    expect(await answer(`SELECT NULL AS "a,b", '' AS e, 'x"y' AS q, e'1\\n2' AS n, 1.10 AS d`, "csv")).toBe(
      '"a,b",e,q,n,d\n,"","x""y","1\n2",1.10\n',
    );
  });

  it.each([
    ["json", (text: string) => `"${text}"`],
    ["ndjson", (text: string) => `"${text}"`],
    ["csv", (text: string) => text],
    ["table", (text: string) => text.replaceAll("\ufeff", "\\ufeff")],
  ] as const)("keep a leading U+FEFF wherever a text stands, as %s", async (format, printed) => {
    const long = "\ufeff, and more than twelve bytes";
    for (const text of ["\ufeff", "\ufeffa", "\ufeff\ufeffb", long]) {
      expect(await answer(`SELECT '${text}' AS a`, format)).toContain(printed(text));
      const nested = await answer(`SELECT [{'k': map {'${text}': ['${text}']}}] AS a`, format);
      expect(nested.split(format === "table" ? printed(text) : text)).toHaveLength(3);
    }
  });

  it("align tables, escape control characters, and say when rows are left out", async () => {
    const notes: string[] = [];
    let text = "";
    const result = await query.run("SELECT i AS n, chr(27) || '[31m' AS t FROM range(200) r(i)");
    for await (const part of render(result, "table", { mostRows: 2, onCut: (note) => notes.push(note) }))
      text += part;
    expect(text).toBe("n  t\n-  ----------\n0  \\u001b[31m\n1  \\u001b[31m\n");
    expect(notes).toEqual(["2 of 200 rows are shown; for all, use the csv format or a file"]);
    // leaving early frees the connection for the next query
    expect(await answer("SELECT 1 AS a")).toBe('{"a":1}\n');
  });
});

describe("an answer is whole or an error", () => {
  it("gives every row, in the order asked for", async () => {
    const text = await answer("SELECT hash(i) AS h FROM range(100000) r(i) ORDER BY h", "csv");
    const hashes = text.trimEnd().split("\n").slice(1).map(BigInt);
    expect(hashes).toHaveLength(100_000);
    expect(hashes.every((hash, index) => index === 0 || hashes[index - 1]! <= hash)).toBe(true);
  });

  it("throws when a row in the middle of a stream fails", async () => {
    const sql =
      "SELECT CASE WHEN i = 100000 THEN error('boom') ELSE i::VARCHAR END AS a FROM range(200000) r(i)";
    await expect(answer(sql)).rejects.toMatchObject({
      code: "query_invalid",
      message: expect.stringContaining("boom"),
    });
  });

  it("throws when time is up in the middle of a stream", async () => {
    const sql = "SELECT md5(i::VARCHAR) AS a FROM range(1000000000000) r(i)";
    await expect(answerWith({ timeoutMs: 200 }, sql)).rejects.toMatchObject({
      code: "query_invalid",
      message: "the query took longer than 0.2 s",
    });
  });

  it("throws when time is up before the first row", async () => {
    const sql = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b";
    await expect(answerWith({ timeoutMs: 100 }, sql)).rejects.toMatchObject({
      hint: "Narrow the query, or raise --timeout (RUNVAULT_TIMEOUT).",
    });
  });

  it("throws when memory is short", async () => {
    const sql = "SELECT string_agg(i::VARCHAR) AS a FROM range(100000000) r(i)";
    await expect(answerWith({ memoryLimitMb: 64 }, sql)).rejects.toMatchObject({ code: "query_invalid" });
  });

  it("throws the signal's reason when aborted", async () => {
    const controller = new AbortController();
    const result = await query.run(
      "SELECT md5(i::VARCHAR) AS a FROM range(1000000000000) r(i)",
      controller.signal,
    );
    const read = async () => {
      for await (const _ of result.batches()) controller.abort(new Error("enough"));
    };
    await expect(read()).rejects.toThrow("enough");
    expect(await answer("SELECT 1 AS a")).toBe('{"a":1}\n');
  });
});

describe("errors", () => {
  it("name the nearest table", async () => {
    await expect(answer("SELECT * FROM fils")).rejects.toMatchObject({
      code: "query_invalid",
      message: expect.stringContaining("fils does not exist"),
      hint: expect.stringContaining("Did you mean fills?"),
    });
  });

  it("carry DuckDB's message", async () => {
    await expect(answer("SELEC 1")).rejects.toMatchObject({
      message: expect.stringContaining("syntax error"),
    });
    await expect(answer("SELECT nothing FROM fills")).rejects.toMatchObject({
      message: expect.stringContaining("nothing"),
    });
  });

  it("call a cut, a garbled and a missing Parquet file damage, with its path", async () => {
    const one = await buildArchive([
      { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 50_000 } } },
    ]);
    try {
      const { file } = committedParquet(one.archive, await one.archive.manifests(), "fills", false)[0]!;
      const sound = await readFile(file);
      const garbled = Buffer.from(sound);
      garbled.fill(0x5a, sound.length - 1000, sound.length - 100);
      await writeFile(file, garbled);
      await expect(openAndSum(one.archive)).rejects.toMatchObject({ code: "archive_damaged" });
      await writeFile(file, sound);
      await truncate(file, 100);
      await expect(openAndSum(one.archive)).rejects.toMatchObject({
        code: "archive_damaged",
        place: { file },
      });
      await unlink(file);
      await expect(openAndSum(one.archive)).rejects.toMatchObject({
        code: "archive_damaged",
        place: { file },
      });
    } finally {
      await one.dispose();
    }
  });
});

async function openAndSum(archive: Parameters<typeof openQuery>[0]): Promise<string> {
  await using other = await openQuery(archive);
  return await answer("SELECT count(DISTINCT COLUMNS(*)) FROM fills", "ndjson", other);
}
