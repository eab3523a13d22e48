import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
  type UnknownField,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { RunvaultError } from "../../model/error.ts";

/** Most unknown fields of a message, as for rows. */
const mostUnknown = 1000;

/**
 * A message as the bytes that REST would send, zero values present, so that archived documents do not depend on the
 * transport. History routes use proto field names, control routes lower camel case; messages of another contract use
 * proto field names and may be something other than a JSON object.
 *
 * Unknown fields are kept as in rows: after the others of their message, under `#` and their number, with their
 * original bytes (tag included, in base64). Throws `not_a_gateway` for more than a thousand of them.
 */
export function documentBytes<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  plane: "history" | "control" | "foreign",
): Uint8Array {
  const useProtoFieldName = plane !== "control";
  const json = toJson(schema, message, { useProtoFieldName, alwaysEmitImplicit: true });
  const keyOf = ({ name, jsonName }: DescField) => (useProtoFieldName ? name : jsonName);
  addUnknown(reflect(schema, message), json, keyOf, plane === "foreign");
  return Buffer.from(JSON.stringify(json));
}

/** Adds the unknown fields of a message, and of nested ones, to its JSON. */
function addUnknown(
  message: ReflectMessage,
  json: JsonValue | undefined,
  keyOf: (field: DescField) => string,
  isForeign: boolean,
): void {
  if (!isObject(json) && isForeign) return;
  if (!isObject(json)) throw new Error(`${message.desc.typeName} is not a JSON object`);
  for (const field of message.fields) {
    if (field.message === undefined || !message.isSet(field)) continue;
    const inner = json[keyOf(field)];
    if (field.fieldKind === "message") addUnknown(message.get(field), inner, keyOf, isForeign);
    else if (field.fieldKind === "list") {
      const items = inner as readonly JsonValue[];
      let at = 0;
      for (const item of message.get(field))
        addUnknown(item as ReflectMessage, items[at++], keyOf, isForeign);
    } else if (!isForeign)
      throw new Error(`${field.parent.typeName}.${field.name} is a map, which no document has`);
  }
  const fields = message.getUnknown() ?? [];
  if (fields.length > 0) Object.assign(json, unknownMembers(fields));
}

function unknownMembers(fields: readonly UnknownField[]): JsonObject {
  if (fields.length > mostUnknown) {
    throw new RunvaultError("not_a_gateway", `a message has more than ${mostUnknown} unknown fields`, {
      status: 200,
      hint: "Check the gateway and any proxy in front of it: answers are damaged, or differ from the contract in proto/.",
    });
  }
  const writers = new Map<number, BinaryWriter>();
  for (const { no, wireType, data } of fields.toSorted((a, b) => a.no - b.no)) {
    const writer = writers.get(no) ?? new BinaryWriter();
    writers.set(no, writer.tag(no, wireType).raw(data));
  }
  const members = [...writers].map(([no, writer]) => [
    `#${no}`,
    Buffer.from(writer.finish()).toString("base64"),
  ]);
  return Object.fromEntries(members) as JsonObject;
}

function isObject(json: JsonValue | undefined): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
