import { createHash } from "node:crypto";
import type { SurveyRecord } from "../archive/pending.ts";
import type { RunRef } from "../model/source.ts";
import type { Table } from "../model/table.ts";
import { int64Max, int64Min, type Nanoseconds } from "../model/time.ts";
import { fetchSlice, type SliceWork } from "./fetch-slice.ts";

/**
 * A full pass over a table without storing anything: what a source without storage facts holds. With open bounds, so
 * that the pass that stores, in slices, asks with others: both must bring the same bytes.
 */
export async function surveyTable(
  run: RunRef,
  table: Table,
  until: Nanoseconds | undefined,
  work: Omit<SliceWork, "store" | "startOver" | "countRows">,
): Promise<SurveyRecord> {
  const hash = createHash("sha256");
  let rows = 0;
  let first: string | null = null;
  let last: string | null = null;
  await fetchSlice(
    { run, table, bucket: "", from: int64Min, to: until ?? int64Max, expected: undefined },
    {
      ...work,
      countRows: undefined,
      startOver: async () => {},
      store: async (draft, text, release) => {
        hash.update(text);
        rows += draft.rows;
        first ??= timeOf(text.subarray(0, text.indexOf(10)));
        last = timeOf(text.subarray(text.lastIndexOf(10, -2) + 1)) ?? last;
        release();
      },
    },
  );
  return { rows, first, last, sha256: hash.digest("hex"), until: until?.toString() ?? null };
}

/** ts_event of a line; null where it is no row. */
function timeOf(line: Uint8Array): string | null {
  try {
    const row = JSON.parse(Buffer.from(line).toString("utf8")) as { ts_event?: unknown };
    return typeof row.ts_event === "string" && /^-?\d{1,19}$/.test(row.ts_event) ? row.ts_event : null;
  } catch {
    return null;
  }
}
