import { tableNamed } from "../../model/profile/table.ts";
import type { HistorySource, TableFacts } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { RowWire } from "../../row/wire/row-wire.ts";
import type { Listing } from "../history/page-token.ts";
import { RowCursor } from "../history/row-cursor.ts";
import { maxPageBytes } from "../wire-hook.ts";

/**
 * The last rows of a listing, in key order, encoded for a response: at most `count`, and at most 4 MiB. Sources return
 * rows from the front, so windows before the end are tried, each twice as long as the last, until one has enough.
 */
export async function recentRows(
  source: HistorySource,
  listing: Listing,
  count: number,
  signal: AbortSignal,
): Promise<{ wire: Uint8Array; rows: number }> {
  const { run, table, from, to, filters } = listing;
  const facts = (await source.facts(run, { from, to }, signal))?.get(table);
  for (let window = firstWindow(facts, count); ; window = window === undefined ? undefined : window * 2n) {
    const start = window === undefined || facts?.last === undefined ? undefined : facts.last - window;
    const isWhole = start === undefined || start <= (from ?? facts?.first ?? start);
    const wire = new RowWire(tableNamed(table), "plain", count * 512);
    await using cursor = new RowCursor(source, { ...run, table, from: isWhole ? from : start, to, filters });
    const rows: Uint8Array[] = [];
    for (;;) {
      if (cursor.next(wire) === "wait") {
        if (await cursor.more(signal)) continue;
        break;
      }
      rows.push(Uint8Array.from(wire.written()));
      wire.clear();
      // dropped in batches: shifting the list for every row would cost more than the rows
      if (rows.length >= 2 * count) rows.splice(0, rows.length - count);
    }
    if (rows.length < count && !isWhole) continue;
    const last = rows.slice(-count);
    let bytes = last.reduce((sum, row) => sum + row.length, 0);
    while (bytes > maxPageBytes && last.length > 1) bytes -= last.shift()!.length;
    return { wire: Buffer.concat(last), rows: last.length };
  }
}

/** A period before the last row that probably holds twice the wanted rows; undefined if unknown. */
function firstWindow(facts: TableFacts | undefined, count: number): Nanoseconds | undefined {
  if (facts?.first === undefined || facts.last === undefined || facts.rows <= BigInt(count)) return undefined;
  const share = ((facts.last - facts.first) * BigInt(2 * count)) / facts.rows;
  return share > 0n ? share : 1n;
}
