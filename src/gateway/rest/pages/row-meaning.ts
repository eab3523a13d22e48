import { type JsonNode, readJsonText } from "../../profile/check/json-node.ts";

/** A line's meaning, independent of the order of keys, of blanks, and of trailing zeros of decimals. */
export function rowMeaning(line: Uint8Array): string {
  const text = Buffer.from(line).toString("utf8");
  const node = readJsonText(text);
  return node === undefined ? text : meaningOf(node);
}

function meaningOf(node: JsonNode): string {
  switch (node.kind) {
    case "string":
      return JSON.stringify(withoutZeros(node.value));
    case "array":
      return `[${node.items.map(meaningOf).join(",")}]`;
    case "object": {
      const members = node.members.map(([name, value]) => `${JSON.stringify(name)}:${meaningOf(value)}`);
      return `{${members.sort().join(",")}}`;
    }
    default:
      return withoutZeros(node.text);
  }
}

function withoutZeros(text: string): string {
  return text.replace(/^(-?\d+)(?:\.0+|(\.\d*?[1-9])0+)$/, (_, whole: string, part = "") => whole + part);
}
