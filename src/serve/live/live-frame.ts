import { create, fromJsonString, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import {
  type ClientFrame,
  ClientFrameSchema,
  ServerFrameSchema,
} from "../../gen/example/gateway/v1/live_pb.ts";
import { PreviewRowSchema } from "../../gen/example/history/v1/history_service_pb.ts";
import type { LiveValue } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tables } from "../../model/profile/table.ts";
import { rowMessage } from "../../row/wire/row-message.ts";

/** The request in a client's frame. Throws `invalid_argument`. */
export function readClientFrame(text: string): Exclude<ClientFrame["frame"], { case: undefined }> {
  let frame: ClientFrame["frame"];
  try {
    ({ frame } = fromJsonString(ClientFrameSchema, text));
  } catch (cause) {
    throw new RunvaultError("invalid_argument", "the frame is not a ClientFrame", { cause, hint });
  }
  if (frame.case === undefined)
    throw new RunvaultError("invalid_argument", "the frame contains no request", { hint });
  if (frame.value.resourceKey === "")
    throw new RunvaultError("invalid_argument", "resourceKey is empty", { hint });
  return frame;
}

const hint = 'Send {"subscribe":{"resourceKey":"…"}} or {"unsubscribe":{"resourceKey":"…"}}.';

/** A server frame as text. */
export function serverFrame(frame: MessageInitShape<typeof ServerFrameSchema>["frame"]): string {
  const message = create(ServerFrameSchema, frame === undefined ? {} : { frame });
  return JSON.stringify(toJson(ServerFrameSchema, message, { alwaysEmitImplicit: true }));
}

export interface ValuesHead {
  readonly resourceKey: string;
  readonly number: number;
  readonly dropped: number;
}

/**
 * A frame of values as text. The rows are canonical lines; they become protobuf JSON only by renaming keys, so no
 * number passes through a double.
 */
export function valuesFrame(head: ValuesHead, { table, rows, replayed }: LiveValue): string {
  const field = previewFields[table];
  const cased = rows.map((row) => `{"${field}":${lowerCamel(row)}}`);
  return `{"values":{"resourceKey":${JSON.stringify(head.resourceKey)},"model":"${table}","number":"${head.number}","dropped":"${head.dropped}","replayed":${replayed},"rows":[${cased.join(",")}]}}`;
}

/** PreviewRow's field for a table's rows, by its JSON name. */
const previewFields = Object.fromEntries(
  tables.map((table) => {
    const message = rowMessage(table);
    const field = PreviewRowSchema.fields.find((candidate) => candidate.message === message);
    if (field === undefined) throw new Error(`PreviewRow has no ${message.typeName}`);
    return [table.name, field.jsonName];
  }),
) as Readonly<Record<TableName, string>>;

/** A flat row with keys in lower camel case. Quotes in strings are escaped, so only keys match. */
function lowerCamel(row: string): string {
  return row.replaceAll(
    /([{,]")([a-z_]+)(":)/g,
    (_match, before: string, name: string, after: string) =>
      before + name.replaceAll(/_([a-z])/g, (_score, letter: string) => letter.toUpperCase()) + after,
  );
}
