import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { fieldsHint, type Wrong } from "./descriptor-set.ts";

/** The fields on a path; all but the last are messages. */
export type FieldChain = readonly [DescField, ...DescField[]];

/** Follows a path of field names through a message; only with `lists` may it go through lists. */
export function followPath(
  message: DescMessage,
  path: readonly string[],
  lists = false,
): { readonly chain: FieldChain } | Wrong {
  const chain: DescField[] = [];
  let here: DescMessage | undefined = message;
  for (const [i, name] of path.entries()) {
    const last = chain.at(-1);
    if (here === undefined || (last !== undefined && isOpaque(last.message))) {
      const around = path.slice(0, i).join(".");
      return {
        message: `goes into ${around}, which is ${last === undefined ? "nothing" : kindText(last)}`,
        hint: `Name ${around} itself.`,
      };
    }
    if (last?.fieldKind === "list" && !lists) {
      const around = path.slice(0, i).join(".");
      return { message: `goes into ${around}, which is a list`, hint: "Name a field that is not repeated." };
    }
    const field: DescField | undefined = here.fields.find((one) => one.name === name);
    if (field === undefined) {
      return { message: `names ${name}, which ${here.typeName} does not have`, hint: fieldsHint(here, name) };
    }
    chain.push(field);
    here = field.fieldKind === "map" ? undefined : field.message;
  }
  return { chain: chain as unknown as FieldChain };
}

/** Whether a message is read as one value. */
function isOpaque(message: DescMessage | undefined): boolean {
  return message !== undefined && (isTimestamp(message) || wrapped(message) !== undefined);
}

export function isTimestamp(message: DescMessage | undefined): boolean {
  return message?.typeName === "google.protobuf.Timestamp";
}

/** The value's field in a wrapper type of google.protobuf. */
export function wrapped(message: DescMessage | undefined): DescField | undefined {
  const isWrapper = /^google\.protobuf\.(Double|Float|U?Int(32|64)|Bool|String|Bytes)Value$/.test(
    message?.typeName ?? "",
  );
  return isWrapper ? message?.field.value : undefined;
}

/** Protobuf's name for a field's type; for a wrapper, its value's type. */
export function kindText(field: DescField): string {
  const inner = field.fieldKind === "map" ? undefined : wrapped(field.message);
  if (inner !== undefined && field.fieldKind === "message") return kindText(inner);
  if (field.fieldKind === "map") return "a map";
  if (field.fieldKind === "list") return "a list";
  if (field.message !== undefined) return field.message.typeName;
  if (field.enum !== undefined) return "an enum";
  return scalarNames[field.scalar!]!;
}

/** By ScalarType. */
const scalarNames: Readonly<Record<number, string>> = {
  1: "double",
  2: "float",
  3: "int64",
  4: "uint64",
  5: "int32",
  6: "fixed64",
  7: "fixed32",
  8: "bool",
  9: "string",
  12: "bytes",
  13: "uint32",
  15: "sfixed32",
  16: "sfixed64",
  17: "sint32",
  18: "sint64",
};
