import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect } from "vitest";
import { tableNames } from "../src/model/table.ts";
import { type Finished, run, start } from "./cli-process.ts";
import { recordings } from "./requirement.ts";

const recorded = (name: string) => join(recordings, name);
/** BTC perpetual future, with volumes. */
export const btc = recorded("btc-perp-1m-2022-01.csv.gz");
/** GBP/USD bid, without. */
export const gbpusd = recorded("gbpusd-m1-bid-2012.csv.gz");

/**
 * Closing time in nanoseconds, open, high, low, close and volume of each bar, as plain decimals with commas between; a
 * file without volumes gives NULL for them.
 */
export function recordedBars(file: string): string[] {
  const [head, ...lines] = gunzipSync(readFileSync(file)).toString("utf8").trimEnd().split("\n");
  expect(head).toMatch(/^timestamp,open,high,low,close(,volume)?$/);
  return lines.map((line) => {
    const [stamp = "", ...values] = line.split(",");
    const [, day, time, fraction = ""] = /^(\S+) (\d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00:00)?$/.exec(stamp) ?? [];
    const seconds = BigInt(Date.parse(`${day}T${time}Z`)) / 1000n;
    return barText(`${seconds}${fraction.padEnd(9, "0")}`, values);
  });
}

function barText(time: string, texts: readonly unknown[]): string {
  const values = texts.map((text) => (text === null ? "NULL" : plain(String(text))));
  return [time, ...values, ...(values.length === 4 ? ["NULL"] : [])].join();
}

/** The same number without the zeros at its end that say nothing. */
function plain(decimal: string): string {
  // no expect here: it would take most of the time of half a million calls
  if (!/^\d+(\.\d+)?$/.test(decimal)) throw new Error(`not a plain decimal: ${decimal}`);
  return decimal.includes(".") ? decimal.replace(/\.?0*$/, "") : decimal;
}

const values = ["open", "high", "low", "close", "volume"] as const;

/** The bars of the Parquet files that a glob over `tables/` finds, in the form of `recordedBars`. */
export async function globbedBars(archive: string, runId: string): Promise<string[]> {
  const duckdb = await DuckDBInstance.create(":memory:");
  const connection = await duckdb.connect();
  try {
    const texts = values.map((name) => `${name}::VARCHAR`).join(", ");
    const reader = await connection.runAndReadAll(
      `SELECT epoch_ns(ts_event)::VARCHAR, ${texts} FROM '${archive}/tables/bars/**/*.parquet' WHERE run_id = '${runId}' ORDER BY ts_event`,
    );
    return reader.getRows().map(([time, ...texts]) => barText(String(time), texts));
  } finally {
    connection.closeSync();
    duckdb.closeSync();
  }
}

/** The bars as `runvault query` prints them, in the form of `recordedBars`. */
export async function queriedBars(archive: string): Promise<string[]> {
  const sql = `SELECT ts_event, ${values.join(", ")} FROM bars ORDER BY ts_event`;
  const { stdout } = await run(["query", "--archive", archive, "--format", "ndjson", sql]);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => {
      const row = JSON.parse(line) as Record<string, string | null>;
      const [, whole, fraction] = /^(.*)\.(\d{9})Z$/.exec(row.ts_event!) ?? [];
      const time = `${BigInt(Date.parse(`${whole}Z`)) / 1000n}${fraction}`;
      return barText(
        time,
        values.map((name) => row[name]),
      );
    });
}

export interface Report {
  readonly runs: readonly {
    readonly runId: string;
    readonly state: string;
    readonly tables: Record<string, { state: string; proof: string; rows: number }>;
  }[];
}

/** Archives what a gateway has finished, and wants every table COMPLETE by one proof. */
export async function archiveFinished(
  url: string,
  archive: string,
  proof: "counted" | "exhausted",
  only: readonly string[] = tableNames,
  transport = "auto",
): Promise<Report["runs"]> {
  const args = ["archive", "--all", "--finished", "--gateway", url, "--archive", archive, "--json"];
  const finished = await run([...args, "--tables", only.join(","), "--transport", transport]);
  expect(finished).toMatchObject({ status: 0 });
  const { runs } = JSON.parse(finished.stdout) as Report;
  expect(runs.length).toBeGreaterThan(0);
  for (const { state, tables } of runs) {
    const got = Object.entries(tables).map(([table, it]) => [table, it.state, it.proof]);
    expect(got).toEqual(only.map((table) => [table, "COMPLETE", proof]));
    expect(state).toBe("COMPLETE");
  }
  return runs;
}

/** `runvault simulate` until `stop`. */
export async function simulate(...args: string[]): Promise<{ url: string; stop(): Promise<Finished> }> {
  const running = start(["simulate", "--json", "--port", "0", ...args]);
  const [line] = (await once(running.child.stdout, "data")) as [Buffer];
  return {
    url: (JSON.parse(line.toString("utf8")) as { url: string }).url,
    stop: () => {
      running.child.kill("SIGTERM");
      return running.finished;
    },
  };
}
