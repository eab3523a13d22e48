import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isTimestamp, kindText, wrapped } from "../../rpc/message-path.ts";

/** A field in a message, or in a message that it contains once. */
export interface PlacedField {
  readonly path: readonly string[];
  readonly field: DescField;
}

/** How deep messages are searched. */
const deepest = 4;

/** A message's single values, with their paths; not those in lists, maps, or nested messages of the same kind. */
export function singleFields(
  message: DescMessage,
  around: readonly string[] = [],
  inside: readonly DescMessage[] = [],
): PlacedField[] {
  const kinds = [...inside, message];
  return message.fields.flatMap((field) => {
    const path = [...around, field.name];
    if (field.fieldKind === "list" || field.fieldKind === "map") return [];
    if (!isGroup(field)) return [{ path, field }];
    const inner = field.message!;
    return path.length < deepest && !kinds.includes(inner) ? singleFields(inner, path, kinds) : [];
  });
}

/** A message's lists, deeper ones last. */
export function listFields(message: DescMessage): PlacedField[] {
  const found: PlacedField[] = [];
  const seen = new Set([message]);
  let level: { readonly path: readonly string[]; readonly message: DescMessage }[] = [{ path: [], message }];
  for (let depth = 1; depth < deepest && level.length > 0; depth++) {
    const next: typeof level = [];
    for (const { path, message: here } of level) {
      for (const field of here.fields) {
        const own = [...path, field.name];
        if (field.fieldKind === "list") found.push({ path: own, field });
        else if (isGroup(field) && !seen.has(field.message!)) {
          seen.add(field.message!);
          next.push({ path: own, message: field.message! });
        }
      }
    }
    level = next;
  }
  return found;
}

/** Whether a field contains further fields. */
function isGroup(field: DescField): boolean {
  return field.fieldKind === "message" && !isTimestamp(field.message) && wrapped(field.message) === undefined;
}

/** The first field of a kind with a matching name. If its own name is a generic id, the enclosing name counts. */
export function fieldNamed(
  fields: readonly PlacedField[],
  name: RegExp,
  isFit: (field: DescField) => boolean,
): PlacedField | undefined {
  return fields.find(({ path, field }) => isFit(field) && name.test(telling(path)));
}

/** The part of a path that names the value. */
export function telling(path: readonly string[]): string {
  const last = path.at(-1)!;
  return /^(?:id|value)$/i.test(last) && path.length > 1 ? path.at(-2)! : last;
}

export function isText(field: DescField): boolean {
  return kindText(field) === "string";
}

export function isCount(field: DescField): boolean {
  return ["int32", "uint32", "int64", "uint64"].includes(kindText(field));
}

export function isTime(field: DescField): boolean {
  return (
    isTimestamp(field.message) ||
    ["int64", "uint64", "sint64", "fixed64", "sfixed64"].includes(kindText(field))
  );
}
