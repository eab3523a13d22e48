import { RunvaultError, type WiderColumn } from "../../model/error.ts";
import {
  type Digits,
  digitsOf,
  type ExactTypes,
  exactType,
  hasRoom,
  widerType,
} from "../../model/profile/exact-types.ts";
import type { Table } from "../../model/profile/table.ts";
import { Turns } from "../../model/turns.ts";
import { shorten } from "../../row/strict-line.ts";
import { tooNarrow } from "./convert-row-error.ts";

/** The most digits that a column's values need, with the values that need them. */
interface Needed extends Digits {
  readonly largest: string;
  readonly finest: string;
}

/**
 * The error for a table in which a value did not fit its column, made once all its lines are here. It names every
 * column that is too narrow, with a type that holds all values, so one widening is enough. For a column whose values
 * fit no type, it gives two of the values.
 */
export async function tooNarrowColumns(
  error: RunvaultError,
  table: Table,
  exactTypes: ExactTypes,
  texts: AsyncIterable<Buffer>,
): Promise<RunvaultError> {
  const wider: WiderColumn[] = [];
  for (const [column, { whole, scale, largest, finest }] of await neededDigits(table, texts)) {
    if (hasRoom(exactType(exactTypes, column), { whole, scale })) continue;
    const type = widerType(exactTypes[column]!, { whole, scale });
    if (type === null) {
      const values = largest === finest ? shorten(largest) : `${shorten(largest)} and ${shorten(finest)}`;
      const message = `${table.name}.${column} has the values ${values}: no column type holds ${whole} digits before the point and ${scale} after it`;
      return new RunvaultError("value_out_of_range", message, {
        cause: error,
        place: error.place,
        hint: "Ask the gateway's operator to correct these values.",
      });
    }
    wider.push({ table: table.name, column, type, whole, scale });
  }
  // only the conversion sees a value that is written with escapes
  return wider.length === 0 ? error : tooNarrow(error.message, error.place, wider);
}

async function neededDigits(table: Table, texts: AsyncIterable<Buffer>): Promise<Map<string, Needed>> {
  const names = table.columns.flatMap(({ name, kind }) => (kind === "exact" ? [name] : []));
  const pattern = new RegExp(`"(${names.join("|")})"[ \\t\\r]*:[ \\t\\r]*"(-?[0-9]+(?:\\.[0-9]+)?)"`, "g");
  const needed = new Map<string, Needed>();
  const turns = new Turns();
  for await (const text of texts) {
    for (let start = 0, stop = 0; start < text.byteLength; start = stop) {
      const end = text.indexOf(0x0a, start + pieceBytes);
      stop = end < 0 ? text.byteLength : end + 1;
      // one character per byte: the search is for ASCII
      for (const [, column = "", value = ""] of text.toString("latin1", start, stop).matchAll(pattern)) {
        const { whole, scale } = digitsOf(value);
        const most = needed.get(column) ?? { whole: 0, scale: 0, largest: value, finest: value };
        if (whole <= most.whole && scale <= most.scale) continue;
        needed.set(column, {
          ...(whole > most.whole ? { whole, largest: value } : { whole: most.whole, largest: most.largest }),
          ...(scale > most.scale ? { scale, finest: value } : { scale: most.scale, finest: most.finest }),
        });
      }
      if (turns.isDue(stop - start)) await turns.next();
    }
  }
  return needed;
}

const pieceBytes = 1024 * 1024;
