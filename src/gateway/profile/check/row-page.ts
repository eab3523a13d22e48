import { nextLink } from "../../rest/pages/next-page.ts";
import type { NextPlace, Pages, RestRoute, RowForm } from "../profile.ts";
import { jsonOf, type Told } from "./asker.ts";
import { arraysIn, type JsonNode, type JsonObject, leavesOf, nodeAt, readJsonText } from "./json-node.ts";
import { scalarText } from "./sample.ts";

/** The rows of one answer, or why there are none. */
export type RowPage =
  | {
      readonly kind: "rows";
      readonly rows: readonly JsonObject[];
      /** The whole document, if rows are an array in it. */
      readonly around: JsonNode | undefined;
    }
  | {
      readonly kind: "fault";
      readonly about: "media_type" | "list_path" | "wrong_value";
      readonly message: string;
      readonly hint: string;
    };

/** Finds the rows in an answer of status 200. */
export function rowsOf(told: Told, form: RowForm): RowPage {
  if (told.status === 204) return { kind: "rows", rows: [], around: undefined };
  const typeFault = mediaTypeFault(told, form);
  if (typeFault !== undefined) return typeFault;
  return form.form === "lines" ? ofLines(told) : ofArray(told, form.path);
}

function mediaTypeFault({ mediaType }: Told, form: RowForm): RowPage | undefined {
  if (mediaType !== undefined && form.mediaTypes.includes(mediaType)) return undefined;
  const isJson = mediaType === "application/json" && form.form === "lines";
  return {
    kind: "fault",
    about: "media_type",
    message: `the answer is ${mediaType ?? "without a media type"}, not ${form.mediaTypes.join(" or ")}`,
    hint: isJson
      ? "If the rows are in an array, say where: `rows: { array: data.items }`."
      : `If these are rows, name this media type in the profile: \`rows: { ${form.form === "lines" ? "lines: true" : `array: ${pathText(form.path)}`}, media_types: [${mediaType ?? "…"}] }\`.`,
  };
}

function ofLines({ text, cut }: Told): RowPage {
  const lines = text.split("\n");
  // the last line end is followed by nothing or by a truncated line
  const last = lines.pop() ?? "";
  if (!cut && last.trim() !== "") lines.push(last);
  const rows: JsonObject[] = [];
  for (const line of lines) {
    if (line.trim() === "") continue;
    const node = readJsonText(line);
    if (node?.kind !== "object") {
      const whole = readJsonText(text, cut);
      const [array] = whole === undefined ? [] : [...arraysIn(whole)];
      return {
        kind: "fault",
        about: "list_path",
        message: "a line of the answer is not a JSON object",
        hint:
          array === undefined
            ? "Rows must be JSON objects, one on each line or as entries of an array in a JSON document."
            : `The answer is one JSON document with an array at ${pathText(array[0])}: write \`rows: { array: ${pathText(array[0])} }\`.`,
      };
    }
    rows.push(node);
  }
  return { kind: "rows", rows, around: undefined };
}

function ofArray(told: Told, path: readonly string[]): RowPage {
  const around = jsonOf(told);
  if (around === undefined) {
    const isLines = told.text.split("\n", 2).every((line) => readJsonText(line)?.kind === "object");
    return {
      kind: "fault",
      about: "list_path",
      message: "the answer is not a JSON document",
      hint: isLines
        ? "It has a JSON object on each line: write `rows: lines`."
        : "Look at the answer with curl: the profile's path or parameters may be wrong.",
    };
  }
  const at = nodeAt(around, path);
  if (at?.kind !== "array") {
    const arrays = [...arraysIn(around)].map(
      ([found, items]) => `${pathText(found)} (${items.length} entries)`,
    );
    return {
      kind: "fault",
      about: "list_path",
      message: `the answer has no array at ${pathText(path)}`,
      hint:
        arrays.length === 0
          ? `The answer has no arrays. It begins with ${beginning(told.text)}.`
          : `The answer has ${arrays.length === 1 ? "an array" : "arrays"} at ${arrays.join(", ")}.`,
    };
  }
  const other = at.items.find(({ kind }) => kind !== "object");
  if (other !== undefined) {
    return {
      kind: "fault",
      about: "wrong_value",
      message: `an entry of the array at ${pathText(path)} is not an object: ${shortText(other.text)}`,
      hint: "Rows must be JSON objects: runvault cannot yet read rows without field names.",
    };
  }
  return { kind: "rows", rows: at.items as readonly JsonObject[], around };
}

/** A path in a profile's notation: a list if a name has a dot. */
export function pathText(path: readonly string[]): string {
  if (path.length === 0) return "[]";
  return path.some((name) => name.includes(".")) ? `[${path.join(", ")}]` : path.join(".");
}

/** A value's text, short enough for a line. */
export function shortText(text: string, most = 40): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

function beginning(text: string): string {
  return shortText(text.trimStart().split("\n", 1)[0]!.trim(), 60);
}

/** The value at a place in an answer: in the body or in a header. */
export function valueAt(place: NextPlace, told: Told, around: JsonNode | undefined): string | undefined {
  if ("header" in place) return told.headers[place.header.toLowerCase()];
  const node = nodeAt(around, place.body);
  if (node?.kind === "string") return node.value === "" ? undefined : node.value;
  return node?.kind === "number" ? node.text : undefined;
}

/** The place as shown to people. */
export function placeText(place: NextPlace): string {
  return "header" in place ? `the header ${place.header}` : pathText(place.body);
}

/** The address of the next page from `Link`; undefined if there is none. */
function linkedNext({ headers }: Pick<Told, "headers">): string | undefined {
  return headers.link === undefined ? undefined : nextLink(headers.link);
}

/** The cursor or address of the next page. Undefined on the last page, and for pages by offset or number. */
export function nextOf(pages: Pages, told: Told, around: JsonNode | undefined): string | undefined {
  if (pages.by === "cursor" || pages.by === "address") return valueAt(pages.next, told, around);
  return pages.by === "link" ? linkedNext(told) : undefined;
}

/** Fields around the rows, with their values: cursors or totals may be among them. */
export function fieldsAround(
  around: JsonNode | undefined,
  route: Pick<RestRoute, "rows">,
): (readonly [string, JsonNode])[] {
  if (around?.kind !== "object") return [];
  const rows = route.rows.form === "array" ? route.rows.path.join("\0") : "";
  return [...leavesOf(around)]
    .filter(([path, node]) => path.join("\0") !== rows && node.kind !== "array")
    .map(([path, node]) => [pathText(path), node] as const);
}

const totalNames =
  /^(?:x-)?(?:total|count)(?:[-_]?(?:count|items|entries|results|records|rows|size))?$|[a-z_-]total$/i;

/** Where an answer has a likely total of at least `least`: the field's path or the header's name. */
export function signOfTotal(
  { headers }: Pick<Told, "headers">,
  around: JsonNode | undefined,
  route: Pick<RestRoute, "rows">,
  least: number,
): { readonly where: string; readonly isHeader: boolean; readonly total: number } | undefined {
  const named = [
    ...fieldsAround(around, route).map(
      ([where, node]) => [where, where.split(".").at(-1)!, scalarText(node) ?? "", false] as const,
    ),
    ...Object.entries(headers).map(([name, text]) => [name, name, text, true] as const),
  ];
  for (const [where, name, text, isHeader] of named) {
    if (totalNames.test(name) && /^\d{1,15}$/.test(text) && Number(text) >= least)
      return { where, isHeader, total: Number(text) };
  }
  return undefined;
}

const nextNames =
  /^(?:next|cursor|continuation|after|more)|next(?:page|cursor|token|link|url)?$|(?:page|cursor)_?token$/i;

/** An empty field named like a link to the next page: this answer may be the last page. */
export function emptyNext(around: JsonNode | undefined, route: Pick<RestRoute, "rows">): string | undefined {
  return fieldsAround(around, route).find(
    ([where, node]) =>
      nextNames.test(where.split(".").at(-1)!) &&
      (node.kind === "null" || (node.kind === "string" && node.value === "")),
  )?.[0];
}

/** What looks like a link to a next page, in a profile's notation; undefined if nothing does. */
export function signOfNext(
  told: Pick<Told, "headers">,
  around: JsonNode | undefined,
  route: Pick<RestRoute, "rows">,
):
  | { readonly where: string; readonly value: string; readonly by: "link" | "cursor" | "address" }
  | undefined {
  const link = linkedNext(told);
  if (link !== undefined) return { where: 'the header Link (rel="next")', value: link, by: "link" };
  for (const [where, node] of fieldsAround(around, route)) {
    const name = where.split(".").at(-1)!;
    if (!nextNames.test(name)) continue;
    const value = node.kind === "string" ? node.value : node.kind === "number" ? node.text : "";
    if (value === "") continue;
    return { where, value, by: /^(?:https?:)?\/|\?.*=/.test(value) ? "address" : "cursor" };
  }
  for (const [name, value] of Object.entries(told.headers)) {
    if (/next|cursor|continuation/i.test(name) && value !== "") {
      return { where: `the header ${name}`, value, by: /^(?:https?:)?\//.test(value) ? "address" : "cursor" };
    }
  }
  return undefined;
}
