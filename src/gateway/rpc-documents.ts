import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";

/**
 * A message as the bytes that REST has for it, zero values present: what is archived of a run does not tell by which
 * transport it came. History routes have proto field names, control routes lower camel case.
 */
export function documentBytes<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  plane: "history" | "control",
): Uint8Array {
  const json = toJson(schema, message, {
    useProtoFieldName: plane === "history",
    alwaysEmitImplicit: true,
  });
  return Buffer.from(JSON.stringify(json));
}
