import { isUtf8 } from "node:buffer";
import type { DescMessage } from "@bufbuild/protobuf";
import { RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import { rowMessage } from "./row-message.ts";
import { malformed, WireCursor, wireType } from "./wire-cursor.ts";

/** Where a page has its rows and token, by field numbers. */
export interface PageLayout {
  readonly rows: number;
  readonly token: number;
  /** If each row wraps one of several tables' messages: the number of this table's. Undefined for bare rows. */
  readonly member: number | undefined;
  /** Numbers of the other tables' messages. */
  readonly others: ReadonlySet<number>;
  /** Fields of the answer that contain rows or the token, by number; 0 for what a level does not have. */
  readonly inside?: ReadonlyMap<number, PageLayout>;
  /** Known fields of the answer that contain neither. */
  readonly known?: ReadonlySet<number>;
}

/** Where a page's bytes have the rows and the next token. */
export interface PageIndex {
  readonly page: Uint8Array;
  readonly rows: number;
  /** Start and end of each row's message. */
  readonly places: Int32Array;
  /** Empty on the last page. */
  readonly nextToken: string;
  /** Besides rows and token: the length of the longest value by field number; 0 for values without a length. */
  readonly unknown: ReadonlyMap<number, number>;
}

/** Longest accepted token: it is sent back with every request. */
const longestTokenBytes = 64 * 1024;

/** Most unknown fields of a page that are reported. */
const mostUnknown = 100;

/** The layout of a page message with rows of the table. Throws if the descriptors do not fit. */
export function pageLayout(table: Table, page: DescMessage): PageLayout {
  const message = rowMessage(table);
  const rows = page.field.rows;
  const token = page.field.nextPageToken;
  if (rows?.fieldKind !== "list" || rows.listKind !== "message" || token === undefined) {
    throw new Error(`${page.typeName} is not a page of rows`);
  }
  const common = { rows: rows.number, token: token.number };
  if (rows.message === message) return { ...common, member: undefined, others: new Set() };
  const members = rows.message.fields.filter(({ oneof }) => oneof !== undefined);
  const member = members.find((field) => field.message === message);
  if (member === undefined) throw new Error(`${page.typeName} carries no rows of ${table.name}`);
  const others = new Set(members.flatMap((field) => (field === member ? [] : [field.number])));
  return { ...common, member: member.number, others };
}

/**
 * Finds a page's rows and next token without reading the rows, so that the next page can be requested meanwhile.
 * Reports fields that the page's message does not have; they are not part of a row. Throws `malformed_row`; `refused`
 * for more than `mostRows`: an empty row takes two bytes here and a hundred times that as a line, so the page's size
 * alone does not limit the result.
 */
export function indexPage(page: Uint8Array, layout: PageLayout, mostRows: number): PageIndex {
  const found: Found = {
    page,
    inner: new WireCursor(page, 0, 0),
    places: new Int32Array(8192),
    rows: 0,
    nextToken: undefined,
    unknown: new Map(),
  };
  look(found, new WireCursor(page, 0, page.byteLength), layout, mostRows);
  const { rows, places, nextToken, unknown } = found;
  return { page, rows, places, nextToken: nextToken ?? "", unknown };
}

interface Found {
  readonly page: Uint8Array;
  /** For the contents of a row. */
  readonly inner: WireCursor;
  places: Int32Array<ArrayBuffer>;
  rows: number;
  nextToken: string | undefined;
  readonly unknown: Map<number, number>;
}

function look(found: Found, cursor: WireCursor, layout: PageLayout, mostRows: number): void {
  const { page, unknown } = found;
  while (cursor.next()) {
    const inside = layout.inside?.get(cursor.number);
    if (cursor.number === layout.rows) {
      const end = enter(cursor);
      const { rows } = found;
      if (rows === mostRows) throw tooManyRows(mostRows);
      if (rows * 2 === found.places.length) {
        const more = new Int32Array(found.places.length * 2);
        more.set(found.places);
        found.places = more;
      }
      found.places[rows * 2] = cursor.pos;
      found.places[rows * 2 + 1] = end;
      if (layout.member !== undefined) unwrap(found.inner, layout, found.places, rows * 2);
      found.rows += 1;
      cursor.pos = end;
    } else if (cursor.number === layout.token) {
      if (found.nextToken !== undefined) throw malformed("it has two next_page_token fields");
      const end = enter(cursor);
      const bytes = page.subarray(cursor.pos, end);
      if (bytes.byteLength > longestTokenBytes || !isUtf8(bytes))
        throw malformed("its next_page_token is too long or not UTF-8");
      found.nextToken = Buffer.from(bytes).toString("utf8");
      cursor.pos = end;
    } else if (inside !== undefined) {
      const end = enter(cursor);
      look(found, new WireCursor(page, cursor.pos, end), inside, mostRows);
      cursor.pos = end;
    } else {
      const { number, type, tagAt } = cursor;
      cursor.skip();
      if (layout.known?.has(number) === true) continue;
      const bytes = type === wireType.length ? cursor.pos - tagAt : 0;
      if (unknown.size < mostUnknown) unknown.set(number, Math.max(unknown.get(number) ?? 0, bytes));
    }
  }
}

/** Narrows the place of a wrapped row to the message in it, which must occur once and be this table's. */
function unwrap(cursor: WireCursor, layout: PageLayout, places: Int32Array, at: number): void {
  cursor.moveTo(places[at]!, places[at + 1]!);
  let found = false;
  while (cursor.next()) {
    if (cursor.number === layout.member) {
      if (found) throw malformed("one of its rows is set twice");
      found = true;
      const end = enter(cursor);
      places[at] = cursor.pos;
      places[at + 1] = end;
      cursor.pos = end;
    } else if (layout.others.has(cursor.number)) {
      throw malformed("it holds a row of another table");
    } else {
      cursor.skip();
    }
  }
  if (!found) throw malformed("it holds a row of no known table");
}

function tooManyRows(mostRows: number): RunvaultError {
  return new RunvaultError("refused", `the gateway sent a page of more than the ${mostRows} rows requested`, {
    scope: "table",
    hint: "Nothing from this page was used. Ask the gateway's operator why it ignores page_size, the maximum number of rows of a page.",
  });
}

function enter(cursor: WireCursor): number {
  if (cursor.type === wireType.length) return cursor.enter();
  throw malformed(`field ${cursor.number} has the wire type ${cursor.type}`);
}
