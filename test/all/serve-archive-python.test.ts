import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Table, type TableName, tables } from "../../src/model/profile/table.ts";
import type { RunRef } from "../../src/model/source.ts";
import type { Row } from "../../src/row/line.ts";
import { tokenLine } from "../../src/serve/auth/token-list.ts";
import { inProject } from "../fixtures/command/project.ts";
import { PythonSession } from "../fixtures/command/python-session.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { newAuthority, newCertificate } from "../fixtures/command/tls-files.ts";
import { ServedArchive } from "../fixtures/served/served-archive.ts";

/** What `rows-client.py` says of a table, read in one of the ways. */
interface Seen {
  readonly table: string;
  readonly reader: string;
  readonly rows: number;
  /** What the header said ahead; pandas shows no headers of what it asks for itself. */
  readonly promised?: number;
  readonly sums: Readonly<Record<string, string>>;
  readonly first: readonly string[];
  readonly last: readonly string[];
  readonly sha256: string;
}

const readers = [
  "ndjson, json",
  "ndjson, pandas",
  "ndjson, pandas by address",
  "ndjson, polars",
  "ndjson, duckdb",
  "arrow, pyarrow",
  "arrow, polars",
  "arrow, duckdb",
  "arrow, pandas",
  "csv, pandas",
  "csv, polars",
];

/** The sum of exact numbers as they stand on the wire; an empty one is none. */
function exactSum(texts: readonly string[]): string {
  const decimals = 18;
  const sum = texts.reduce((before, text) => {
    const [whole = "", rest = ""] = text.replace("-", "").split(".");
    const units = BigInt(whole + rest.padEnd(decimals, "0"));
    return text.startsWith("-") ? before - units : before + units;
  }, 0n);
  const digits = String(sum < 0n ? -sum : sum).padStart(decimals + 1, "0");
  const text = `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, "");
  return sum < 0n ? `-${text}` : text;
}

type Expected = Omit<Seen, "reader" | "promised">;

/** What every reader has to see of the lines that the simulator gave. */
function expectedOf({ name, columns }: Table, lines: readonly string[]): Expected {
  const rows = lines.map((line) => JSON.parse(line) as Row);
  const shown = rows.map((row) =>
    columns.map(({ name: column, kind }) => {
      if (kind !== "double" || row[column] === "NaN") return String(row[column]);
      const bits = Buffer.alloc(8);
      bits.writeDoubleBE(Number(row[column]));
      return bits.toString("hex");
    }),
  );
  const exact = columns.filter(({ kind }) => kind === "exact");
  const hash = createHash("sha256");
  for (const row of shown) hash.update(`${row.join("\x1f")}\n`);
  return {
    table: name,
    rows: rows.length,
    sums: Object.fromEntries(
      exact.map((column) => [column.name, exactSum(rows.map((row) => String(row[column.name])))]),
    ),
    first: shown[0]!,
    last: shown.at(-1)!,
    sha256: hash.digest("hex"),
  };
}

let python: PythonSession;
let world: ServedArchive;
let last: RunRef;
let seen: readonly Seen[];
const expected = new Map<TableName, Expected>();

/** Runs `rows-client.py` on tables of the last run. */
async function pythonReads(some: readonly Table[], settings: Record<string, unknown> = {}): Promise<Seen[]> {
  const asked = {
    base: world.url,
    instance: last.instanceId,
    run: last.runId,
    tables: some.map(({ name, path, columns }) => ({
      name,
      path,
      columns: columns.map((column) => [column.name, column.kind]),
    })),
    ...settings,
  };
  const lines = await python.run(clientText("rows-client.py"), [], JSON.stringify(asked));
  return lines
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Seen);
}

const clientText = (name: string) => readFileSync(inProject("test/fixtures/command", name), "utf8");

describe.skipIf(!requires("http-client"))("Python", () => {
  beforeAll(async () => {
    python = new PythonSession();
    world = await ServedArchive.open({ rows: 1000 });
    last = world.runs.at(-1)!;
    seen = await pythonReads(tables);
    for (const table of tables) {
      expected.set(table.name, expectedOf(table, await world.simulatedLines(last, table.name)));
    }
  });
  afterAll(async () => {
    await python[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  test.each(readers.flatMap((reader) => tables.map(({ name }) => [reader, name] as const)))(
    "with %s reads the simulator's rows of %s",
    (reader, name) => {
      const { promised, ...values } = seen.find((one) => one.reader === reader && one.table === name)!;
      const wanted = expected.get(name)!;
      expect(values).toEqual({ ...wanted, reader });
      expect(promised ?? wanted.rows).toBe(wanted.rows);
    },
  );

  test("was asked for every way of reading there is, and rows have what is hard to keep", async () => {
    expect([...new Set(seen.map(({ reader }) => reader))]).toEqual(readers);
    const [orders, factors] = await Promise.all([
      world.simulatedLines(last, "orders"),
      world.simulatedLines(last, "factors"),
    ]);
    expect(orders.some((line) => line.includes('"price":""') || line.includes('"average_price":""'))).toBe(
      true,
    );
    expect(factors.some((line) => line.includes('"value":"NaN"'))).toBe(true);
  });

  test("requests takes gzip and zstd off by itself", async () => {
    const script = `
import json, sys, requests
address = sys.argv[1]
plain = requests.get(address, headers={"Accept-Encoding": "identity"})
assert "content-encoding" not in plain.headers
offered = requests.get(address)
codings = [offered.headers["content-encoding"]]
assert offered.content == plain.content and "zstd" in offered.request.headers["Accept-Encoding"]
for coding in ("gzip", "zstd"):
    answer = requests.get(address, headers={"Accept-Encoding": coding})
    codings.append(answer.headers["content-encoding"])
    assert answer.content == plain.content and len(plain.content) > 0
    assert answer.headers["runvault-rows"] == str(plain.content.count(b"\\n"))
print(json.dumps(codings))`;
    expect(JSON.parse(await python.run(script, [world.rowsUrl(last, "bars")]))).toEqual([
      "zstd",
      "gzip",
      "zstd",
    ]);
  });

  test("an answer that the archive cannot finish is an error to requests and pandas, in every coding", async () => {
    const script = `
import http.client, json, sys, pandas as pd, requests
address = sys.argv[1]
ended = []
for coding in ("identity", "gzip", "zstd"):
    answer = requests.get(address, headers={"Accept-Encoding": coding}, stream=True)
    lines = 0
    try:
        for line in answer.iter_lines():
            lines += 1
        ended.append("whole")
    except requests.exceptions.RequestException as error:
        ended.append([answer.status_code, lines < int(answer.headers["runvault-rows"])])
try:
    pd.read_json(address, lines=True)
except http.client.IncompleteRead:
    ended.append("IncompleteRead")
print(json.dumps(ended))`;
    // a server that has not read the table before, of the run that no other test asks for
    const first = world.runs[0]!;
    const base = await world.serve();
    await world.withDamage(first, "factors", async () => {
      const ended = JSON.parse(await python.run(script, [world.rowsUrl(first, "factors", "", base)]));
      expect(ended).toEqual([[200, true], [200, true], [200, true], "IncompleteRead"]);
    });
  });

  test("Arrow without rows still has types, for pyarrow and polars", async () => {
    const script = `
import sys, requests, pyarrow as pa, polars as pl
body = requests.get(sys.argv[1], headers={"Accept": "application/vnd.apache.arrow.stream"}).content
table, frame = pa.ipc.open_stream(body).read_all(), pl.read_ipc_stream(body)
print(table.num_rows, frame.height, table.schema.field("ts_event").type, frame.schema["seq"], sep=",")`;
    const out = await python.run(script, [world.rowsUrl(last, "fills", "&from=0&to=1")]);
    expect(out.trim()).toBe("0,0,timestamp[ns],UInt64");
  });

  test("a Prometheus parser reads what discovery names", async () => {
    const { families, groups, contentTypes } = JSON.parse(
      await python.run(clientText("metrics-client.py"), [new URL(world.url).origin]),
    );
    const { host } = new URL(world.url);
    expect(groups).toEqual([
      { targets: [host], labels: { __scheme__: "http", __metrics_path__: "/metrics" } },
    ]);
    // the words that Prometheus takes for discovery, and for text of the format that the parser is for
    expect(contentTypes).toEqual([
      "application/json; charset=utf-8",
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    const { runvault_http_requests: requests, process_resident_memory_bytes: memory } = families;
    expect([requests.type, memory.type]).toEqual(["counter", "gauge"]);
    expect(memory.samples[0].value).toBeGreaterThan(1e6);
    const counted = requests.samples.find(
      ({ labels }: { labels: Record<string, string> }) =>
        labels.route === "/api/v1/history/fills" && labels.status === "200",
    );
    // each reader asked once for fills; the tests beside this one may have asked, too
    expect(counted.value).toBeGreaterThanOrEqual(readers.length);
  });

  describe.skipIf(!requires("openssl"))("over TLS with a token", () => {
    const token = "0123456789abcdef-python";
    let base: string;
    let authority: string;
    beforeAll(async () => {
      const ca = newAuthority(world.folder, "authority");
      const pair = newCertificate(world.folder, "server", ca);
      authority = ca.certFile;
      const tokens = join(world.folder, "tokens");
      await writeFile(tokens, tokenLine(token, "notebook", [last.instanceId]));
      base = await world.serve(
        ...["--tls-cert", pair.certFile, "--tls-key", pair.keyFile, "--tokens", tokens],
      );
    });

    test("requests reads rows and frames as without", async () => {
      expect(base).toMatch(/^https:/);
      const settings = { base, token, verify: authority, readers: ["ndjson, polars", "arrow, pyarrow"] };
      const bars = tables.filter(({ name }) => name === "bars" || name === "fills");
      const found = await pythonReads(bars, settings);
      expect(found).toEqual(
        seen.filter(
          ({ table, reader }) => settings.readers.includes(reader) && bars.some(({ name }) => name === table),
        ),
      );
      expect(found).toHaveLength(4);
    });

    test("requests is told without a token, with a wrong one, and without the authority", async () => {
      const script = `
import json, sys, requests
address, authority, token = sys.argv[1:]
def asked(**headers):
    answer = requests.get(address, headers=headers, verify=authority)
    return [answer.status_code, answer.headers.get("www-authenticate"), answer.json()["error"]["code"]]
told = [asked(), asked(Authorization="Bearer " + token[::-1])]
try:
    requests.get(address, headers={"Authorization": "Bearer " + token})
except requests.exceptions.SSLError:
    told.append("SSLError")
print(json.dumps(told))`;
      const out = await python.run(script, [world.rowsUrl(last, "fills", "", base), authority, token]);
      const refused = [401, "Bearer", "unauthenticated"];
      expect(JSON.parse(out)).toEqual([refused, refused, "SSLError"]);
    });

    test("a Prometheus parser reads the metrics that discovery names, with the token", async () => {
      const args = [new URL(base).origin, authority, token];
      const { families, groups } = JSON.parse(await python.run(clientText("metrics-client.py"), args));
      expect(groups).toMatchObject([{ labels: { __scheme__: "https" } }]);
      expect(families.runvault_http_requests.type).toBe("counter");
    });
  });
});
