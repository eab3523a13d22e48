import { RunvaultError } from "../src/model/error.ts";
import { canonicalLine, type Row } from "../src/model/line.ts";
import type {
  DocumentKind,
  HistorySource,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
} from "../src/model/source.ts";
import { type TableName, tableNamed } from "../src/model/table.ts";
import type { TimeBounds } from "../src/model/time.ts";

/** A row of a table where nothing matters but what is given. */
export function rowOf(table: TableName, given: Row): Row {
  const blank = Object.fromEntries(
    tableNamed(table).columns.map(({ name, kind }) => [
      name,
      kind === "string" ? "" : kind === "exact" ? "1.25" : kind === "double" ? 0.5 : "0",
    ]),
  );
  return { ...blank, instance_id: "alpha", run_id: "r1", ...given };
}

/** A source over rows in memory: instance `alpha` with the runs given, oldest first. */
export class ArraySource implements HistorySource {
  readonly label = "array";
  readonly runIds: readonly string[];
  readonly rowsOf: Partial<Record<TableName, readonly Row[]>>;
  chunkBytes = 1000;
  /** Answers whose iteration was ended, for whatever reason. */
  ended = 0;
  /** Fails after that many chunks. */
  failAfterChunks = Number.POSITIVE_INFINITY;
  lists = true;

  constructor(rowsOf: Partial<Record<TableName, readonly Row[]>>, runIds: readonly string[] = ["r0", "r1"]) {
    this.rowsOf = rowsOf;
    this.runIds = runIds;
  }

  /** The canonical lines of a table of the run r1. */
  lines(table: TableName): string[] {
    return (this.rowsOf[table] ?? []).map((row) => canonicalLine(tableNamed(table), row));
  }

  async instances(): Promise<readonly InstanceEntry[]> {
    return [{ instanceId: "alpha", runIds: this.runIds }];
  }

  async runs(instanceId: string): Promise<readonly RunEntry[] | null> {
    if (!this.lists) return null;
    this.check({ instanceId, runId: "r1" });
    return this.runIds.map((runId) => ({
      instanceId,
      runId,
      status: "FINISHED",
      started: 9_007_199_254_740_993n,
      ended: 9_007_199_254_740_995n,
      final: true,
      storageVersion: "v7",
    }));
  }

  async facts(run: RunRef, bounds: TimeBounds): Promise<StorageFacts | null> {
    this.check(run);
    if (!this.lists) return null;
    return new Map(
      Object.keys(this.rowsOf).map((name) => {
        const rows = this.select({ ...run, ...bounds, table: name as TableName });
        const times = rows.map((row) => BigInt(row.ts_event ?? 0));
        const facts = {
          rows: BigInt(rows.length),
          first: times[0],
          last: times.at(-1),
          schemaFingerprint: "f",
          final: true,
        };
        return [name as TableName, facts];
      }),
    );
  }

  async document(run: RunRef, kind: DocumentKind): Promise<Uint8Array | null> {
    this.check(run);
    return kind === "summary" ? Buffer.from(`{"run_id":"${run.runId}"}`) : null;
  }

  async *rows(request: RowRequest): AsyncGenerator<Uint8Array> {
    this.check(request);
    if (this.rowsOf[request.table] === undefined) {
      throw new RunvaultError("history_unavailable", `run ${request.runId} has no ${request.table}`);
    }
    const table = tableNamed(request.table);
    const text = this.select(request)
      .map((row) => `${canonicalLine(table, row)}\n`)
      .join("");
    const bytes = Buffer.from(text);
    try {
      for (let at = 0, chunks = 0; at < bytes.length; at += this.chunkBytes, chunks += 1) {
        if (chunks >= this.failAfterChunks)
          throw new RunvaultError("history_query_failed", "the store broke");
        yield bytes.subarray(at, at + this.chunkBytes);
      }
    } finally {
      this.ended += 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  private check({ instanceId, runId }: RunRef): void {
    if (instanceId !== "alpha") throw new RunvaultError("instance_not_found", `no instance ${instanceId}`);
    if (!this.runIds.includes(runId)) throw new RunvaultError("run_not_found", `no run ${runId}`);
  }

  private select({ table, from, to, limit, filters }: RowRequest): Row[] {
    return (this.rowsOf[table] ?? [])
      .filter((row) => from === undefined || BigInt(row.ts_event ?? 0) >= from)
      .filter((row) => to === undefined || BigInt(row.ts_event ?? 0) < to)
      .filter((row) => Object.entries(filters ?? {}).every(([name, wanted]) => row[name] === wanted))
      .slice(0, limit);
  }
}

/** `count` fills of the run r1, one every ten nanoseconds from 1000 on, seq from 1. */
export function fills(count: number): Row[] {
  return Array.from({ length: count }, (_, index) =>
    rowOf("fills", {
      seq: String(index + 1),
      ts_event: String(1000 + index * 10),
      symbol: index % 2 === 0 ? "BTC" : "ETH",
      venue: "Zürich",
      price: "27000.5",
    }),
  );
}
