import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { tableFromIPC } from "apache-arrow";
import { parse } from "csv-parse/sync";
import { Agent, interceptors } from "undici";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { parquetForms } from "../../src/analytics/export/parquet-forms.ts";
import type { Archive } from "../../src/archive/archive.ts";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import type { HistorySource } from "../../src/model/source.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const rows = smallWorld(60).get("fills")!;
const text = (some: readonly { line: string }[]) => some.map(({ line }) => `${line}\n`).join("");
const one = smallWorld(8).get("orders")!;

let folder: string;
let archive: Archive;
let manifest: Manifest;
let source: HistorySource;
let server: Served;
const log: RequestLogEntry[] = [];
const others: AsyncDisposable[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "serve-archive-"));
  const world = new Map([
    ["fills", rows],
    ["orders", one],
    ["events", []],
  ] as const);
  const tables = [...world.keys()];
  const made = await archiveWorld(join(folder, "archive"), new ArraySource(worldRun, new Map(world)), {
    tables,
    settings: { segmentBytes: 8000, sliceRows: 100, concurrency: 1 },
  });
  ({ archive, manifest } = made);
  source = openArchiveSource(archive, { forms: parquetForms });
  server = await serving({ source, onRequest: (entry) => log.push(entry) });
});
afterEach(async () => {
  for (const other of others.splice(0)) await other[Symbol.asyncDispose]();
  log.length = 0;
});
afterAll(async () => {
  await server.close();
  await source[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function serving(options: Partial<ServeOptions> & Pick<ServeOptions, "source">): Promise<Served> {
  return await serve({ host: "127.0.0.1", port: 0, compress: true, ...options });
}

/** Closed when the test is over. */
async function alsoServing(options: Partial<ServeOptions> & Pick<ServeOptions, "source">): Promise<Served> {
  const other = await serving(options);
  others.push({ [Symbol.asyncDispose]: () => other.close() });
  return other;
}

function url(table: string, query = "", { url: base }: Served = server): string {
  return `${base}/history/${table}?instance=${worldRun.instanceId}&run_id=${worldRun.runId}${query}`;
}

function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*?)\\r?$`, "m").exec(head)?.[1];
}

/** The body as an undici client gets it that takes compression off. */
async function decompressed(address: string): Promise<string> {
  const agent = new Agent();
  try {
    const response = await agent.compose(interceptors.decompress()).request({
      origin: new URL(address).origin,
      path: address.slice(new URL(address).origin.length),
      method: "GET",
      headers: { "accept-encoding": "zstd" },
    });
    return await response.body.text();
  } finally {
    await agent.close();
  }
}

describe("rows with Accept-Encoding: zstd", () => {
  test("the archive has a table of several segments and one of a single one", () => {
    expect(manifest.tables.fills!.proven!.segments.length).toBeGreaterThan(2);
    expect(manifest.tables.orders!.proven!.segments.filter((segment) => segment.rows > 0).length).toBe(1);
  });

  test("a whole segment goes out as the frame that is stored", async () => {
    const [segment] = manifest.tables.orders!.proven!.segments;
    const stored = await readFile(join(archive.layout.dataDir(worldRun), segment!.file));
    for (const query of ["", "&limit=8", "&limit=9", `&from=${segment!.from}&to=${segment!.to}`]) {
      const answer = await rawGet(url("orders", query), { "accept-encoding": "zstd" });
      expect([answer.status, answer.isWhole]).toEqual([200, true]);
      expect(headerOf(answer.head, "content-encoding")).toBe("zstd");
      expect(headerOf(answer.head, "runvault-rows")).toBe("8");
      expect(answer.body.equals(stored)).toBe(true);
    }
    expect(await decompressed(url("orders"))).toBe(text(one));
    expect(log.at(-1)).toMatchObject({ rows: 8, bytes: stored.length, ending: "whole" });
  });

  test("one segment among several is a stored frame too", async () => {
    const segment = manifest.tables.fills!.proven!.segments[1]!;
    const stored = await readFile(join(archive.layout.dataDir(worldRun), segment.file));
    const answer = await rawGet(url("fills", `&from=${segment.from}&to=${segment.to}`), {
      "accept-encoding": "zstd",
    });
    expect(answer.body.equals(stored)).toBe(true);
  });

  test.each([
    ["several segments", "fills", "", rows],
    ["a part of a segment", "orders", "&limit=3", one.slice(0, 3)],
    [
      "a window that cuts a segment",
      "orders",
      `&from=${one[2]!.ts}`,
      one.filter(({ ts }) => ts >= one[2]!.ts),
    ],
    ["filtered rows", "orders", "&symbol=A", one.filter(({ symbol }) => symbol === "A")],
    ["no rows", "events", "", []],
  ] as const)("%s come as one frame, byte for byte", async (_what, table, query, wanted) => {
    expect(await decompressed(url(table, query))).toBe(text(wanted));
    const answer = await rawGet(url(table, query), { "accept-encoding": "zstd" });
    expect(answer.isWhole).toBe(true);
    expect(zstdDecompressSync(answer.body).toString()).toBe(text(wanted));
  });

  test("without compression, and to who does not take it, the text goes out", async () => {
    const plain = await alsoServing({ source, compress: false });
    const unasked = await rawGet(url("orders", "", plain), { "accept-encoding": "zstd" });
    expect(headerOf(unasked.head, "content-encoding")).toBeUndefined();
    expect(unasked.body.toString()).toBe(text(one));
    const refused = await rawGet(url("orders"), { "accept-encoding": "zstd;q=0, identity" });
    expect(refused.body.toString()).toBe(text(one));
  });

  test("faults of lines still show, in every form asked for", async () => {
    const faulty = await alsoServing({ source, wire: withFaults("cut@orders:3") });
    const cut = await rawGet(url("orders", "", faulty), { accept: "text/csv" });
    expect([cut.isWhole, cut.body.toString()]).toEqual([false, text(one.slice(0, 3))]);
    const after = await rawGet(url("orders", "", faulty), { accept: "text/csv" });
    expect(headerOf(after.head, "content-type")).toContain("text/csv");
  });
});

describe("the number of rows", () => {
  test.each([
    ["a whole table", "fills", "", 60, true],
    ["an empty table", "events", "", 0, true],
    ["a limit below what is there", "fills", "&limit=7", 7, true],
    ["a limit above it", "fills", "&limit=700", 60, true],
    ["filtered rows", "fills", "&symbol=A", 30, true],
    ["a filter that nothing passes", "fills", "&symbol=none", 0, true],
    ["a filter in a time without rows", "fills", "&symbol=A&to=1", 0, true],
    ["a bound within a segment", "fills", `&from=${rows[1]!.ts + 1n}`, 57, false],
  ])("is said ahead where it is known: %s", async (_what, table, query, count, isKnown) => {
    for (const [accept, isTold] of [
      ["*/*", isKnown],
      ["text/csv", true],
    ] as const) {
      const answer = await rawGet(url(table, query), { accept });
      expect(headerOf(answer.head, "runvault-rows")).toBe(isTold ? String(count) : undefined);
    }
    const plain = await rawGet(url(table, query));
    expect(plain.body.toString().split("\n").length - 1).toBe(count);
    expect(log.map((entry) => entry.rows)).toEqual([count, count, count]);
  });
});

describe("other forms", () => {
  const accepting = async (accept: string, query = "", of = server) => {
    const response = await fetch(url("fills", query, of), { headers: { accept } });
    return { type: response.headers.get("content-type"), body: Buffer.from(await response.arrayBuffer()) };
  };
  const fields = rows.map(({ line }) => JSON.parse(line) as Record<string, string>);

  test.each([
    ["*/*", "application/x-ndjson"],
    ["text/html,application/xhtml+xml,*/*;q=0.8", "application/x-ndjson"],
    ["application/json", "application/x-ndjson"],
    ["application/x-ndjson, text/csv", "application/x-ndjson"],
    ["text/csv;q=0", "application/x-ndjson"],
    ["text/csv;q=0.2, application/x-ndjson;q=0.1", "text/csv; charset=utf-8; header=present"],
    ["TEXT/CSV; header=present", "text/csv; charset=utf-8; header=present"],
    ["text/csv;q=0.5, application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.stream"],
  ])("Accept: %s gives %s", async (accept, type) => {
    expect((await accepting(accept)).type).toBe(type);
  });

  test("a source without other forms answers NDJSON as ever", async () => {
    await using bare = openArchiveSource(archive);
    const plain = await alsoServing({ source: bare, compress: false });
    const answer = await rawGet(url("fills", "", plain), { accept: "text/csv" });
    expect(headerOf(answer.head, "content-type")).toBe("application/x-ndjson");
    expect(headerOf(answer.head, "vary")).toBeUndefined();
    expect(answer.body.toString()).toBe(text(rows));
  });

  test("an Arrow stream has the rows of the NDJSON, exact, in its order", async () => {
    const { body } = await accepting("application/vnd.apache.arrow.stream");
    const table = tableFromIPC(body);
    expect(table.numRows).toBe(60);
    expect([...table.getChild("seq")!].map(String)).toEqual(fields.map(({ seq }) => seq));
    expect([...table.getChild("symbol")!]).toEqual(fields.map(({ symbol }) => symbol));
    expect([...table.getChild("trade_id")!]).toEqual(fields.map(({ trade_id }) => trade_id));
    // Arrow's decimals are integers of nine decimals here
    const nine = (exact: string) => {
      const [whole, rest = ""] = exact.split(".");
      return `${whole}${rest.padEnd(9, "0")}`.replace(/^0+(?=\d)/, "");
    };
    expect(String(table.schema.fields.find(({ name }) => name === "price")!.type)).toContain("18");
    expect([...table.getChild("price")!].map(String)).toEqual(fields.map(({ price }) => nine(price!)));
  });

  test("CSV has the rows of the NDJSON, in its order, under a header", async () => {
    const { body } = await accepting("text/csv");
    const records = parse(body, { columns: true }) as Record<string, string>[];
    expect(records.map(({ seq }) => seq)).toEqual(fields.map(({ seq }) => seq));
    expect(records.map(({ price }) => Number(price))).toEqual(fields.map(({ price }) => Number(price)));
  });

  test("bounds, filters and limits hold in every form", async () => {
    const query = `&from=${rows[10]!.ts}&to=${rows[50]!.ts}&symbol=A&limit=5`;
    const wanted = rows
      .filter(({ ts, symbol }) => ts >= rows[10]!.ts && ts < rows[50]!.ts && symbol === "A")
      .slice(0, 5)
      .map(({ seq }) => String(seq));
    const csv = await accepting("text/csv", query);
    expect((parse(csv.body, { columns: true }) as { seq: string }[]).map(({ seq }) => seq)).toEqual(wanted);
    const arrow = await accepting("application/vnd.apache.arrow.stream", query);
    expect([...tableFromIPC(arrow.body).getChild("seq")!].map(String)).toEqual(wanted);
  });

  test("no rows are a header and a schema", async () => {
    const ask = (accept: string) => fetch(url("events"), { headers: { accept } });
    const table = tableFromIPC(await (await ask("application/vnd.apache.arrow.stream")).arrayBuffer());
    expect([table.numRows, table.schema.fields.map(({ name }) => name).slice(0, 3)]).toEqual([
      0,
      ["run_id", "instance_id", "seq"],
    ]);
    expect((await (await ask("text/csv")).text()).split("\n").length).toBe(2);
  });

  test("what is wrong with a request is said as it is of NDJSON", async () => {
    for (const accept of ["text/csv", "application/vnd.apache.arrow.stream"]) {
      const unknown = await fetch(`${server.url}/history/fills?instance=alpha&run_id=none`, {
        headers: { accept },
      });
      expect([unknown.status, await unknown.json()]).toMatchObject([
        404,
        { error: { code: "run_not_found" } },
      ]);
      const absent = await fetch(url("bars"), { headers: { accept } });
      expect([absent.status, await absent.json()]).toMatchObject([
        409,
        { error: { code: "history_unavailable" } },
      ]);
    }
  });
});

describe("a damaged archive", () => {
  test.each(["identity", "zstd", "gzip"])(
    "a segment cuts the answer in %s, whose end is not sent",
    async (coding) => {
      const { segments } = manifest.tables.fills!.proven!;
      const file = join(archive.layout.dataDir(worldRun), segments[2]!.file);
      const bytes = await readFile(file);
      const changed = Buffer.from(bytes);
      changed[changed.length >> 1]! ^= 1;
      await writeFile(file, changed);
      try {
        const errors: string[] = [];
        // nobody has read the segment before
        await using fresh = openArchiveSource(archive);
        const other = await alsoServing({ source: fresh, onError: ({ code }) => errors.push(code) });
        const answer = await rawGet(url("fills", "", other), { "accept-encoding": coding });
        expect([answer.status, answer.isWhole]).toEqual([200, false]);
        expect(errors).toEqual(["archive_damaged"]);
        const before = text(rows.slice(0, segments[0]!.rows + segments[1]!.rows));
        if (coding === "identity") expect(answer.body.toString()).toBe(before);
        const stored = await rawGet(url("fills", `&from=${segments[2]!.from}&to=${segments[2]!.to}`, other), {
          "accept-encoding": coding,
        });
        expect([stored.status, stored.body.toString()]).toEqual([
          502,
          expect.not.stringContaining(archive.dir),
        ]);
        expect(headerOf(stored.head, "content-encoding")).toBeUndefined();
      } finally {
        await writeFile(file, bytes);
      }
    },
  );
});
