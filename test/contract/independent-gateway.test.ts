import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { canonicalLine } from "../../src/model/line.ts";
import { tables } from "../../src/model/table.ts";
import { type IndependentGateway, startIndependentGateway } from "../fixtures/source/independent-gateway.ts";

let gateway: IndependentGateway;
beforeAll(async () => {
  gateway = await startIndependentGateway({ facts: true, cap: 700 });
});
afterAll(() => gateway.close());

async function get(path: string): Promise<{ status: number; type: string; text: string }> {
  const { statusCode, headers, body } = await request(gateway.url + path);
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
