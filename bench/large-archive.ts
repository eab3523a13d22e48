import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { openArchive } from "../src/archive/archive.ts";
import { type Manifest, manifestText } from "../src/archive/manifest/manifest.ts";
import { hashFile } from "../src/archive/storage/file-hash.ts";
import { columnType } from "../src/duckdb/column-type.ts";
import { openDuckDB } from "../src/duckdb/open-duckdb.ts";
import { identifier, literal } from "../src/duckdb/sql.ts";
import { type TableName, tableNamed } from "../src/model/profile/table.ts";

/** Rows of each table that has any. */
export type RowCounts = Partial<Record<TableName, number>>;

const start = 1_420_070_400_000_000_000n;
const minute = 60_000_000_000n;

/** The value of a column in row i of a table, where it differs from its kind's default. */
const values: Partial<Record<TableName, Readonly<Record<string, string>>>> = {
  // no two moves alike, a slow wave that rises, and recoveries
  equity: {
    equity: "1000000 + i / 100.0 + 40000 * sin(i / 90000.0) + (hash(i) % 100000) / 97.0",
    currency: "'USD'",
  },
  events: { kind: "'account.deposit'", amount: "1000000", currency: "'USD'" },
  bars: {
    interval_ns: `${minute}`,
    close: "40000 + 900 * sin(i / 7000.0)",
    high: "41000",
    low: "39000",
    open: "40000",
  },
  fills: {
    side: "CASE WHEN hash(i) % 2 = 0 THEN 'BUY' ELSE 'SELL' END",
    price: "40000 + 900 * sin(i / 7000.0) + (hash(i + 1) % 1000) / 10.0",
    quantity: "(1 + hash(i + 2) % 900) / 1000.0",
    fee: "(hash(i + 3) % 1000) / 1e6",
    fee_currency: "'USD'",
    trade_id: "'T' || i",
    client_order_id: "'O' || i // 3",
    liquidity: "CASE WHEN hash(i + 4) % 3 = 0 THEN 'MAKER' ELSE 'TAKER' END",
  },
  // what was submitted, accepted and filled of the order of three fills
  orders: {
    client_order_id: "'O' || i // 3",
    kind: "['SUBMITTED', 'ACCEPTED', 'FILLED'][1 + i % 3]",
    status: "['SUBMITTED', 'ACCEPTED', 'FILLED'][1 + i % 3]",
    side: "CASE WHEN hash(i // 3) % 2 = 0 THEN 'BUY' ELSE 'SELL' END",
    type: "CASE WHEN hash(i // 3 + 1) % 2 = 0 THEN 'MARKET' ELSE 'LIMIT' END",
    quantity: "(3 + hash(i // 3 + 2) % 900) / 1000.0",
    filled_quantity: "CASE WHEN i % 3 = 2 THEN (3 + hash(i // 3 + 2) % 900) / 1000.0 ELSE 0 END",
    price: "40000 + 900 * sin(i / 7000.0)",
    arrival_price: "40000 + 900 * sin(i / 7000.0)",
  },
  // each side of a book with one level
  order_book: {
    snapshot_id: "i // 2",
    side: "CASE WHEN i % 2 = 0 THEN 'BID' ELSE 'ASK' END",
    price: "40000 + 900 * sin((i // 2) / 35000.0) + (i % 2)",
    quantity: "1",
  },
  // two factors of six symbols, of which one has bars, with gaps
  factors: {
    symbol: "CASE WHEN i % 6 = 0 THEN 'BTC' ELSE 'S' || i % 6 END",
    factor: "CASE WHEN i // 6 % 2 = 0 THEN 'momentum' ELSE 'carry' END",
    value:
      "CASE WHEN hash(i) % 1000 = 0 THEN 'NaN'::DOUBLE ELSE sin(i / 900.0) + (hash(i + 5) % 1000) / 500.0 END",
  },
};

/**
 * An archive of one run, `large/1`, whose tables have these many rows, a minute of equity and bars each and everything
 * else spread over the same time. Its Parquet is made by DuckDB; it has no segments, which readers do not need.
 */
export async function largeArchive(dir: string, counts: RowCounts): Promise<string> {
  const archive = await openArchive(dir, { create: true });
  const run = { instanceId: "large", runId: "1" };
  await mkdir(archive.layout.dataDir(run), { recursive: true });
  const { connection, close } = await openDuckDB({
    threads: 2,
    utc: true,
    memoryLimitMb: 3_000,
    tempDirectory: join(dir, "spill"),
  });
  const span = BigInt(Math.max(...Object.values(counts))) * minute;
  const tables: Manifest["tables"] = {};
  const at = "2026-01-01T00:00:00.000Z";
  try {
    for (const [name, rows] of Object.entries(counts) as [TableName, number][]) {
      const step = name === "events" ? 0n : span / BigInt(rows);
      const table = tableNamed(name);
      // both sides of a book are of one instant
      const nth = name === "order_book" ? "(i - i % 2)" : "i";
      const cells = table.columns.map((column) => {
        const type = columnType(column, archive.exactTypes(name));
        const common: Record<string, string> = {
          ...{ instance_id: "'large'", run_id: "'1'", seq: "i", account: "'main'", portfolio: "'core'" },
          ...{ symbol: "'BTC'", venue: "'X'" },
        };
        const own = values[name]?.[column.name] ?? common[column.name];
        if (column.kind === "timestamp")
          return `make_timestamp_ns(${start} + (${nth} + 1) * ${step}) AS ${identifier(column.name)}`;
        const blank = column.kind === "string" ? "''" : "0";
        return `CAST(${own ?? blank} AS ${type}) AS ${identifier(column.name)}`;
      });
      const file = `${name}-all-g1.parquet`;
      const path = join(archive.layout.dataDir(run), file);
      await connection.run(
        `COPY (SELECT ${cells.join(", ")} FROM range(${rows}) t(i)) TO ${literal(path)} (FORMAT parquet, COMPRESSION zstd)`,
      );
      const key = (row: number) => {
        const at = name === "order_book" ? row - (row % 2) : row;
        return { ts: String(start + BigInt(at + 1) * step), seq: String(row) };
      };
      const proven = {
        certificate: {
          ...{
            proof: "exhausted" as const,
            ended: "clean" as const,
            rows,
            quarantined: 0,
            quarantineAccepted: false,
          },
          ...{ gatewayRows: null, gatewayFrom: null, first: key(0), last: key(rows - 1), until: null },
          ...{ schemaFingerprint: null, rowHash: null, restsOn: [], checkedAt: at },
        },
        exactTypes: { ...archive.exactTypes(name) },
        segments: [],
        parquet: [
          { file, bucket: "all", rows, ...(await hashFile(path)), first: key(0), last: key(rows - 1) },
        ],
        ...{ quarantine: [], drift: [], storageVersion: "v1" },
      };
      const attempt = {
        at,
        error: null,
        notes: [],
        outcome: "ok" as const,
        behindSince: null,
        holding: null,
      };
      tables[name] = { state: "COMPLETE", grain: "all", proven: { state: "COMPLETE", ...proven }, attempt };
    }
  } finally {
    close();
  }
  const manifest: Manifest = {
    ...{ format: 2, ...run, generation: 1, state: "COMPLETE", source: "http://127.0.0.1/api/v1" },
    run: { status: "FINISHED", started: String(start), ended: null, final: true, storageVersion: "v1" },
    ...{
      horizon: null,
      closedAt: null,
      tables,
      documents: {},
      tool: "bench",
      startedAt: at,
      committedAt: at,
    },
    ...{ durationMs: 1, retries: 0 },
  };
  const file = archive.layout.manifestFile(run);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, manifestText(manifest));
  return "large/1";
}
