import type { JsonNode } from "../check/json-node.ts";
import { shortText } from "../check/row-page.ts";
import { scalarText } from "../check/sample.ts";
import { digitsAhead, likelyUnit } from "../check/times.ts";
import { unsure } from "./draft-line.ts";

/** A date without a time could also be an id. */
const dateAlone = /^\d{4}-\d\d-\d\d$/;

/** A text with its own unit and zone. */
const wholeRfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Whether a value is a plausible time in some unit. */
export function isTimeNode(node: JsonNode): boolean {
  const text = scalarText(node);
  return text !== undefined && !dateAlone.test(text) && likelyUnit(text) !== undefined;
}

/**
 * The unit of times as far as values show it, as YAML, with the reason. A number never shows its unit, so likely ones
 * must be confirmed. `name` is the field's.
 */
export function timeUnitText(
  nodes: readonly JsonNode[],
  name = "",
): { readonly unit: string; readonly reason: string; readonly likely: string | undefined } {
  const values = nodes.filter((node) => scalarText(node) !== undefined);
  const first = values[0];
  if (first === undefined) {
    const likely = unitOfName(name);
    const reason =
      likely === undefined ? "no time was seen: look up its unit" : `from the ending of ${name}: look it up`;
    return { unit: unsure(likely), reason, likely };
  }
  const shown = shortText(first.text);
  if (values.every((node) => wholeRfc3339.test(scalarText(node) ?? "")))
    return { unit: "rfc3339", reason: `${shown} shows it`, likely: "rfc3339" };
  const text = scalarText(first) ?? "";
  const likely = likelyUnit(text);
  const reason =
    likely === undefined
      ? `${shown} is not a plausible time in any unit`
      : likely === "rfc3339"
        ? `${shown} has no zone: confirm that it is UTC`
        : /e/i.test(text)
          ? `${shown} is a plausible time in ${likely}: confirm it`
          : `${shown} has ${digitsAhead(text)} digits, like current times in ${likely}: confirm it`;
  return { unit: unsure(likely), reason, likely };
}

/** The unit that ends a name such as `fromMs` or `since_ns`. */
export function unitOfName(name: string): string | undefined {
  return /(?:_|[a-z](?=[A-Z]))(ns|us|ms)$/i.exec(name)?.[1]?.toLowerCase();
}
