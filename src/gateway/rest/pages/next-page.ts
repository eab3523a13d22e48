import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import type { AnswerHeaders } from "../../http/answer.ts";
import type { NextPlace, Pages } from "../../profile/profile.ts";
import { countOf, scalarOf } from "../field-values.ts";

/** What a page says about the next one, and where. */
export interface PageTold {
  readonly headers: AnswerHeaders;
  /** The JSON text of the value beside the rows. */
  value(index: number): string | undefined;
}

/** Places of paging values in the body, in the order of lookup. */
export function placesInBody(pages: Pages): readonly (readonly string[])[] {
  return [nextIn(pages), totalIn(pages)].flatMap((place) =>
    place !== undefined && "body" in place ? [place.body] : [],
  );
}

function nextIn(pages: Pages): NextPlace | undefined {
  return "next" in pages ? pages.next : undefined;
}

function totalIn(pages: Pages): NextPlace | undefined {
  return pages.by === "none" ? undefined : pages.total;
}

/** Parameters of the first page, with at most so many rows. */
export function firstPage(pages: Pages, size: number): Readonly<Record<string, number>> {
  if (pages.by === "offset") return { [pages.send]: 0, [pages.size]: size };
  return pages.by === "number" ? { [pages.send]: pages.first, [pages.size]: size } : {};
}

/** The total by a page; `before` if it has none. Undefined if pages announce no total. */
export function totalOf(
  pages: Pages,
  told: PageTold,
  place: ErrorPlace,
  before?: bigint,
): bigint | undefined {
  if (pages.by === "none" || pages.total === undefined) return undefined;
  const next = nextIn(pages);
  const { text } = textAt(pages.total, next !== undefined && "body" in next ? 1 : 0, told, place);
  const total = text === undefined ? before : countOf(text);
  if (total !== undefined) return total;
  const where = "body" in pages.total ? pages.total.body.join(".") : `the header ${pages.total.header}`;
  throw new RunvaultError(
    "not_a_gateway",
    `the answer is not as the profile says: ${where} is not a number of rows`,
    { place, status: 200, hint: "Correct the profile's pages, or remove their total." },
  );
}

/**
 * The cursor or address of the next page. Undefined if there is none: missing, null or empty. `isThere`: the place
 * existed, whatever it held.
 */
export function toldBy(
  pages: Pages,
  told: PageTold,
  place: ErrorPlace,
): { readonly text: string | undefined; readonly isThere: boolean } {
  if (pages.by === "link") {
    const link = told.headers.link;
    return { text: link === undefined ? undefined : nextLink(link), isThere: link !== undefined };
  }
  return textAt(nextIn(pages), 0, told, place);
}

function textAt(
  at: NextPlace | undefined,
  index: number,
  told: PageTold,
  place: ErrorPlace,
): { readonly text: string | undefined; readonly isThere: boolean } {
  if (at === undefined) return { text: undefined, isThere: false };
  if ("header" in at) {
    const text = told.headers[at.header.toLowerCase()]?.trim();
    return { text: text === "" ? undefined : text, isThere: text !== undefined };
  }
  const json = told.value(index);
  if (json === undefined) return { text: undefined, isThere: false };
  if (json === "false") return { text: undefined, isThere: true };
  const text = scalarOf(json);
  if (text === undefined && json !== "null") {
    throw new RunvaultError(
      "not_a_gateway",
      `the answer is not as the profile says: ${at.body.join(".")} is neither text nor a number`,
      { place, status: 200, hint: "Correct the profile's pages." },
    );
  }
  return { text: text === "" ? undefined : text, isThere: true };
}

/** The address of `rel="next"` in a Link header (RFC 8288); undefined if there is none. */
export function nextLink(header: string): string | undefined {
  // addresses and quoted values may contain commas and semicolons
  const link = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g;
  for (const [, address, parameters] of header.matchAll(link)) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]*))/i.exec(parameters ?? "");
    const words = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/);
    if (words.includes("next")) return address;
  }
  return undefined;
}
