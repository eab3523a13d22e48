import type { ErrorPlace } from "../../model/error.ts";
import type { Turns } from "../../model/turns.ts";
import { wireType } from "../../row/wire/wire-cursor.ts";
import { isSignOfPages } from "../paged-list.ts";
import type { UnknownFields } from "../rpc/unknown-fields.ts";

/** What a field's value may be. */
type Holds = "number" | "text" | "several";

/** A list document, by its required contents. */
export interface ListForm {
  /** In words, for messages. */
  readonly what: string;
  /** Key of the list. */
  readonly list: string;
  /** Keys of an entry. */
  readonly keys: readonly string[];
  /** What an entry needs: keys of which at least one is filled, and what its value holds. */
  readonly needed: readonly { readonly keys: readonly string[]; readonly holds: readonly Holds[] }[];
}

/** The entries of a list document; undefined if it has no list. */
export function listIn({ list }: ListForm, json: unknown): readonly unknown[] | undefined {
  const entries = isObject(json) ? json[list] : undefined;
  return Array.isArray(entries) ? entries : undefined;
}

/** Judges a document's unknown fields, around the list and in its entries. */
export async function judgeFields(
  form: ListForm,
  json: unknown,
  place: ErrorPlace,
  unknown: UnknownFields,
  turns: Turns,
): Promise<void> {
  if (!isObject(json)) return;
  const { what, list } = form;
  const isPlain = (value: unknown) => typeof value !== "object";
  const around = filledUnknown(json, [list, "ok"]).filter(
    ([key, value]) => !isPlain(value) || !isSignOfPages(key, list),
  );
  const listed = listIn(form, json);
  const entries = (listed ?? []).filter(isObject);
  // if the list is there and empty, only another list can have its entries
  const inItsPlace = listed !== undefined ? around.filter(([, value]) => !isObject(value)) : around;
  unknown.judge(
    {
      what,
      fields: around.map(([key]) => key),
      candidates: namesOf(inItsPlace, ["several"]),
      empty: entries.length === 0 ? list : undefined,
    },
    place,
  );
  // filled entries first: they show which fields are not needed
  const judged = (await turns.map(entries, (entry) => seenIn(form, entry))).filter(
    ({ fields }) => fields.length > 0,
  );
  for (const isEmpty of [false, true]) {
    for (const seen of judged) {
      if ((seen.empty !== undefined) === isEmpty) unknown.judge(seen, place);
      if (turns.isDue(0)) await turns.next();
    }
  }
}

function seenIn({ what, keys, needed }: ListForm, entry: Record<string, unknown>) {
  const fields = filledUnknown(entry, keys);
  const missing = needed.find((one) => !one.keys.some((key) => isFilled(entry[key])));
  return {
    what: `an entry of ${what}`,
    fields: fields.map(([key]) => key),
    candidates: missing === undefined ? [] : namesOf(fields, missing.holds),
    empty: missing?.keys[0],
  };
}

type Field = readonly [key: string, value: unknown];

function filledUnknown(object: Record<string, unknown>, known: readonly string[]): Field[] {
  const fields: Field[] = [];
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (known.includes(key) || !isFilled(value)) continue;
    fields.push([key, value]);
    if (fields.length === mostUnknown) break;
  }
  return fields;
}

/** Most unknown fields of an object that are judged. */
const mostUnknown = 1000;

/** Whether a value says anything, unlike a zero value. */
function isFilled(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return Object.keys(value).length > 0;
  return ![undefined, null, "", "0", 0, false].includes(value as string);
}

/** Fields that may hold one of these. */
function namesOf(fields: readonly Field[], holds: readonly Holds[]): string[] {
  return fields.flatMap(([key, value]) =>
    holdsOf(key, value).some((one) => holds.includes(one)) ? [key] : [],
  );
}

function holdsOf(key: string, value: unknown): readonly Holds[] {
  if (/^#\d+$/.test(key) && typeof value === "string") {
    // a message's field with its tag: texts and messages alike start with a length
    const type = (Buffer.from(value, "base64")[0] ?? 0) & 7;
    return type === wireType.length ? ["text", "several"] : ["number"];
  }
  if (typeof value === "object") return ["several"];
  if (typeof value === "number") return ["number"];
  return typeof value === "string" && /^-?\d+$/.test(value) ? ["number", "text"] : ["text"];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
