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

/** The most digits that values of a column need, with the values that need them. */
interface Needed extends Digits {
  readonly largest: string;
  readonly finest: string;
}

/**
 * What to say of a table of which one value did not fit its column, once all of its lines are here: which columns are too
 * narrow, with types that hold every value, so that they are widened once. A column whose values no type holds is named
 * with two of them.
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
        hint: "Have the gateway's operator correct these values.",
      });
    }
    wider.push({ table: table.name, column, type, whole, scale });
  }
  // a value that is written with escapes is seen by the conversion alone
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
      // a character a byte: what is looked for is ASCII
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
