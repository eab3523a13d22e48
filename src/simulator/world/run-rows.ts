import type { TableName } from "../../model/profile/table.ts";
import type { Nanoseconds, TimeBounds } from "../../model/time.ts";
import { lineTime } from "../store/line-time.ts";
import type { LineSelection, TableReader } from "../store/table-reader.ts";
import { latestMicros } from "../store/table-writer.ts";
import type { WorldRun } from "./world.ts";

type Filters = LineSelection["filters"];

/** A run's rows for the live plane: by the time when they became known, and from the end. Lines have no line ends. */
export interface RunRows {
  /** The last `count` lines known by `known`, in key order. */
  last(
    run: WorldRun,
    table: TableName,
    count: number,
    known: Nanoseconds | undefined,
    filters?: Filters,
  ): Promise<string[]>;
  /** Lines that became known after `unknown` and up to `known`, in that order. */
  between(
    run: WorldRun,
    table: TableName,
    unknown: Nanoseconds,
    known: Nanoseconds,
    filters?: Filters,
  ): Promise<string[]>;
  /** All lines within the bounds that are known by `known`, in key order. */
  all(
    run: WorldRun,
    table: TableName,
    known: Nanoseconds | undefined,
    filters?: Filters,
    bounds?: TimeBounds,
  ): AsyncGenerator<string>;
}

/** The longest delay before a row is known, in nanoseconds. */
const latest = BigInt(latestMicros) * 1000n + 1000n;

export function runRows(reader: (run: WorldRun, table: TableName) => Promise<TableReader>): RunRows {
  async function* all(
    run: WorldRun,
    table: TableName,
    selection: Pick<LineSelection, "known" | "unknown" | "filters" | "bounds">,
  ): AsyncGenerator<string> {
    let rest: Buffer = Buffer.alloc(0);
    const chunks = (await reader(run, table)).lines({ ...selection, limit: undefined, signal: undefined });
    for await (const chunk of chunks) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
        yield bytes.toString("utf8", start, end);
        start = end + 1;
      }
      rest = bytes.subarray(start);
    }
  }

  return {
    async last(run, table, count, known, filters = []) {
      return (await reader(run, table)).tail(count, { known, filters });
    },
    async between(run, table, unknown, known, filters = []) {
      const bounds = { from: unknown - latest, to: known + 1n };
      const found: { readonly line: string; readonly init: bigint }[] = [];
      for await (const line of all(run, table, { bounds, known, unknown, filters })) {
        found.push({ line, init: lineTime(line, "ts_init") });
      }
      // the sort is stable: rows that became known at the same instant stay in key order
      return found.sort((a, b) => (a.init < b.init ? -1 : a.init > b.init ? 1 : 0)).map(({ line }) => line);
    },
    all: (run, table, known, filters = [], bounds = {}) => all(run, table, { bounds, known, filters }),
  };
}
