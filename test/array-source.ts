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
  TableFacts,
} from "../src/model/source.ts";
import { type TableName, tableNamed, tableNames } from "../src/model/table.ts";
import type { TimeBounds } from "../src/model/time.ts";

export interface ArrayRow {
  readonly ts: bigint;
  readonly seq: bigint;
  readonly line: string;
  /** Which of several symbols the row carries. */
  readonly symbol: string;
}

/** What a source over rows in memory does to those who ask. */
export interface Manners {
  /** Most rows in one answer, without a word. */
  readonly cap?: number;
  /** The nth row answer is cut after so many bytes; one entry an answer, undefined where it is whole. */
  readonly cuts?: readonly (number | undefined)[];
  /** No list of runs, no facts: what the interface document itself shows. */
  readonly literal?: boolean;
  /** Size of the chunks the bytes come in. */
  readonly chunkBytes?: number;
  readonly final?: boolean;
  /** Ahead of an answer, which counts from 0: the error it is refused with, undefined where it is given. */
  readonly refuses?: (request: RowRequest, answer: number) => RunvaultError | undefined;
  /** The bound that the facts do not heed. */
  readonly factsIgnore?: "from" | "to";
}

/** History of one run over rows in memory: a real source, small enough to hold any world a property test makes. */
export class ArraySource implements HistorySource {
  readonly label = "rows in memory";
  readonly run: RunRef;
  tables: Map<TableName, ArrayRow[]>;
  manners: Manners;
  storageVersion: string | undefined = "1";
  /** Every row request, in order. */
  readonly asked: RowRequest[] = [];

  constructor(run: RunRef, tables: Map<TableName, ArrayRow[]>, manners: Manners = {}) {
    this.run = run;
    this.tables = tables;
    this.manners = manners;
  }

  async instances(): Promise<InstanceEntry[]> {
    return [{ instanceId: this.run.instanceId, runIds: [this.run.runId] }];
  }

  async runs(instanceId = this.run.instanceId): Promise<RunEntry[] | null> {
    if (this.manners.literal) return null;
    if (instanceId !== this.run.instanceId)
      throw new RunvaultError("instance_not_found", `unknown instance ${instanceId}`);
    const final = this.manners.final ?? true;
    const status = final ? "FINISHED" : "RUNNING";
    return [
      {
        ...this.run,
        status,
        started: 1n,
        ended: final ? 2n : undefined,
        final,
        storageVersion: this.storageVersion,
      },
    ];
  }

  async facts(_run: RunRef, bounds: TimeBounds): Promise<StorageFacts | null> {
    if (this.manners.literal) return null;
    const { factsIgnore: ignored } = this.manners;
    const heeded = ignored === undefined ? bounds : { ...bounds, [ignored]: undefined };
    const facts = new Map<TableName, TableFacts>();
    for (const name of tableNames) {
      const rows = this.rowsWithin(name, heeded);
      facts.set(name, {
        rows: BigInt(rows.length),
        first: rows[0]?.ts,
        last: rows.at(-1)?.ts,
        schemaFingerprint: "1",
        final: this.manners.final ?? true,
      });
    }
    return facts;
  }

  async document(_run: RunRef, kind: DocumentKind): Promise<Uint8Array | null> {
    if (kind !== "summary") return null;
    return Buffer.from(JSON.stringify({ status: "FINISHED", ts_started: "1", ts_ended: "2" }));
  }

  async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    const answer = this.asked.push(request) - 1;
    const refusal = this.manners.refuses?.(request, answer);
    if (refusal !== undefined) throw refusal;
    const { cap = Number.POSITIVE_INFINITY, cuts = [], chunkBytes = 1000 } = this.manners;
    const most = Math.min(cap, request.limit ?? Number.POSITIVE_INFINITY);
    const { symbol, ...others } = request.filters ?? {};
    const rows = this.rowsWithin(request.table, request).filter(
      (row) =>
        (symbol === undefined || row.symbol === symbol) &&
        Object.entries(others).every(([name, value]) => row.line.includes(`"${name}":"${value}"`)),
    );
    const text = Buffer.from(
      rows
        .slice(0, most)
        .map(({ line }) => `${line}\n`)
        .join(""),
    );
    const end = Math.min(text.byteLength, cuts[answer] ?? text.byteLength);
    for (let at = 0; at < end; at += chunkBytes) yield text.subarray(at, Math.min(end, at + chunkBytes));
    if (cuts[answer] !== undefined) throw new RunvaultError("stream_cut", `cut after ${end} bytes`);
  }

  rowsWithin(name: TableName, { from, to }: TimeBounds): ArrayRow[] {
    return (this.tables.get(name) ?? []).filter(
      ({ ts }) => (from === undefined || ts >= from) && (to === undefined || ts < to),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Legal rows of a table at the given times, in key order; `seq` counts up from 1 in the order given. */
export function rowsAt(run: RunRef, name: TableName, times: readonly bigint[], symbols = ["A"]): ArrayRow[] {
  const table = tableNamed(name);
  const rows = times.map((ts, i) => {
    const seq = BigInt(i + 1);
    const symbol = symbols[i % symbols.length]!;
    const row: Row = {};
    for (const column of table.columns) {
      row[column.name] =
        column.kind === "exact"
          ? `${i}.${(i % 9) + 1}`
          : column.kind === "double"
            ? i / 3
            : column.kind === "string"
              ? `${column.name}-${i}`
              : i;
    }
    Object.assign(row, {
      run_id: run.runId,
      instance_id: run.instanceId,
      seq,
      ts_event: ts,
      ts_init: ts,
      symbol,
    });
    return { ts, seq, symbol, line: canonicalLine(table, row) };
  });
  return rows.sort(
    (a, b) => Number(a.ts > b.ts) - Number(a.ts < b.ts) || Number(a.seq > b.seq) - Number(a.seq < b.seq),
  );
}
