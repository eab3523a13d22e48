import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { Turns } from "../../../model/turns.ts";
import { readBadRow } from "../../../row/bad-row.ts";
import { type NormaliserOptions, RowNormaliser } from "./row-normaliser.ts";
import { planRows } from "./row-plan.ts";
import { splitRows } from "./split-rows.ts";
import { refuseUnclear } from "./unclear-values.ts";
import { rowUndoer } from "./undo-row.ts";

/** The maps between which rows are converted, with the table and run of the rows. */
export interface Remapping {
  readonly table: Table;
  /** The map that made the lines. */
  readonly from: RowMap;
  readonly to: RowMap;
  readonly run: RunRef;
  readonly options?: NormaliserOptions;
}

/**
 * Converts canonical lines made by the map `from` into those that the map `to` would have made, without fetching the
 * rows. Input chunks may be cut anywhere; output is whole lines. Bad rows (see bad-row.ts) are tried again. A
 * `seq` derived by `from` is dropped, one derived by `to` is `""`. Rows keep their order, even if their new times
 * differ. Throws `invalid_argument` with the column at a value that cannot be restored without fetching.
 */
export async function* remapLines(
  lines: AsyncIterable<Uint8Array>,
  { table, from, to, run, options = {} }: Remapping,
): AsyncGenerator<Uint8Array, void> {
  const old = planRows(table, from, run);
  const undo = rowUndoer(old, refuseUnclear(old, planRows(table, to, run), from.dropped));
  async function* foreignRows(): AsyncGenerator<Uint8Array, void> {
    const turns = new Turns();
    for await (const chunk of splitRows(lines)) {
      await turns.next();
      const rows = chunk
        .toString()
        .split("\n")
        .map((line) => {
          if (line === "") return "";
          // a JSON row has line ends only between its values
          const bad = readBadRow(line)?.text.replaceAll("\n", " ");
          return bad ?? undo(line);
        });
      yield Buffer.from(rows.join("\n"));
    }
  }
  yield* new RowNormaliser(table, to, run, options).over(foreignRows());
}
