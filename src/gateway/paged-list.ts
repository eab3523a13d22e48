import { readJsonText } from "./profile/check/json-node.ts";
import { signOfNext, signOfTotal } from "./profile/check/row-page.ts";

/**
 * What a document says of entries behind those of its list, in words; undefined where it says nothing. A list is asked for once, so
 * nobody would miss what stands on another page.
 */
export function pagedListText(
  bytes: Uint8Array,
  list: readonly string[],
  entries: number,
): string | undefined {
  const node = readJsonText(new TextDecoder().decode(bytes));
  const route = { rows: { form: "array", path: list, mediaTypes: [] } } as const;
  const next = signOfNext({ headers: {} }, node, route);
  if (next !== undefined) return `there is a next page in ${next.where}`;
  const total = signOfTotal({ headers: {} }, node, route, entries + 1);
  return total === undefined ? undefined : `${total.where} says ${total.total}`;
}
