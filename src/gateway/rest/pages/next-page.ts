import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import type { AnswerHeaders } from "../../http/answer.ts";
import type { NextPlace, Pages } from "../../profile/profile.ts";
import { scalarOf } from "../field-values.ts";

/** What a page says of the next one, and where it says it. */
export interface PageTold {
  readonly headers: AnswerHeaders;
  /** The JSON text of the value beside the rows. */
  value(index: number): string | undefined;
}

/** Where values that pages name stand in the body, in the order in which they are asked for. */
export function placesInBody(pages: Pages): readonly (readonly string[])[] {
  const place = placeOf(pages);
  return place !== undefined && "body" in place ? [place.body] : [];
}

function placeOf(pages: Pages): NextPlace | undefined {
  switch (pages.by) {
    case "cursor":
    case "address":
      return pages.next;
    case "offset":
    case "number":
      return pages.total;
    default:
      return undefined;
  }
}

/**
 * The text of the value that a page names: the next cursor, the next address or the total. Undefined where it names none:
 * the value is not there, null or empty. `isThere` is whether its place was, whatever it held.
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
  const at = placeOf(pages);
  if (at === undefined) return { text: undefined, isThere: false };
  if ("header" in at) {
    const text = told.headers[at.header.toLowerCase()]?.trim();
    return { text: text === "" ? undefined : text, isThere: text !== undefined };
  }
  const json = told.value(0);
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

/** The address of `rel="next"` in a Link header (RFC 8288); undefined where there is none. */
export function nextLink(header: string): string | undefined {
  // an address may hold commas and semicolons, and so may a quoted value
  const link = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g;
  for (const [, address, parameters] of header.matchAll(link)) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]*))/i.exec(parameters ?? "");
    const words = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/);
    if (words.includes("next")) return address;
  }
  return undefined;
}
