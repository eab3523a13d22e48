import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { wireType } from "./wire-cursor.ts";

/** How a value becomes JSON; numbers, because the loop looks one up for every value. */
export const jsonKind = {
  text: 0,
  bytes: 1,
  bool: 2,
  double: 3,
  float: 4,
  uint32: 5,
  int32: 6,
  sint32: 7,
  fixed32: 8,
  sfixed32: 9,
  uint64: 10,
  int64: 11,
  sint64: 12,
  fixed64: 13,
  sfixed64: 14,
  enum: 15,
  message: 16,
  /** google.protobuf.Timestamp, as nanoseconds since 1970. */
  timestamp: 17,
  /** A wrapper of google.protobuf: the value in it. */
  wrapper: 18,
} as const;

export interface FieldPlan {
  readonly number: number;
  readonly name: string;
  /** `"name":` */
  readonly lead: Buffer;
  readonly kind: number;
  readonly wireType: number;
  readonly repeated: boolean;
  /** Whether a field missing on the wire is missing in the JSON too; otherwise it has its zero value. */
  readonly presence: boolean;
  /** Replaces a value that is missing on the wire, for fields without presence. */
  readonly zero: Buffer;
  /** Which of the message's oneofs it is in; undefined if in none. */
  readonly oneof: number | undefined;
  readonly message: MessagePlan | undefined;
  readonly names: ReadonlyMap<number, Buffer> | undefined;
}

/** A message's layout, known before its first row: its fields in declaration order. */
export interface MessagePlan {
  readonly fields: readonly FieldPlan[];
  readonly indexOf: ReadonlyMap<number, number>;
  /** Where each field's value is in the current message; -1 if missing. */
  readonly at: Int32Array;
  readonly oneofs: Int32Array;
}

/** A field that cannot be converted into JSON as rows need it, and its kind. */
export interface UnreadableField {
  /** From the row's message on, with dots. */
  readonly path: string;
  readonly what: string;
}

/** The plan of a row's message, or the fields that prevent one. */
export function planMessage(
  desc: DescMessage,
): { readonly plan: MessagePlan } | { readonly unreadable: readonly UnreadableField[] } {
  const unreadable: UnreadableField[] = [];
  const plan = planOf(desc, [], [], unreadable);
  return unreadable.length === 0 ? { plan } : { unreadable };
}

function planOf(
  desc: DescMessage,
  path: readonly string[],
  around: readonly DescMessage[],
  unreadable: UnreadableField[],
): MessagePlan {
  const within = [...around, desc];
  const fields = desc.fields.flatMap((field): readonly FieldPlan[] => {
    const here = [...path, field.name];
    const what = whyUnreadable(field, within);
    if (what !== undefined) {
      unreadable.push({ path: here.join("."), what });
      return [];
    }
    return [fieldPlan(field, (message) => planOf(message, here, within, unreadable))];
  });
  return {
    fields,
    indexOf: new Map(fields.map(({ number }, i) => [number, i])),
    at: new Int32Array(fields.length),
    oneofs: new Int32Array(desc.oneofs.length),
  };
}

function whyUnreadable(field: DescField, within: readonly DescMessage[]): string | undefined {
  if (field.fieldKind === "map") return "a map";
  if (field.message === undefined) return undefined;
  if ("delimitedEncoding" in field && field.delimitedEncoding) return "a group";
  if (field.message.typeName === "google.protobuf.Timestamp") return undefined;
  if (within.includes(field.message)) return "a message that contains itself";
  // their meaning depends on their own content
  return /^google\.protobuf\.(Struct|Value|ListValue|Any)$/.test(field.message.typeName)
    ? field.message.typeName
    : undefined;
}

function fieldPlan(field: DescField, planInner: (message: DescMessage) => MessagePlan): FieldPlan {
  const { message, enum: named } = field;
  const scalar = "scalar" in field ? field.scalar : undefined;
  const kind =
    scalar !== undefined ? scalarKinds[scalar] : named !== undefined ? jsonKind.enum : messageKind(message!);
  const repeated = field.fieldKind === "list";
  return {
    number: field.number,
    name: field.name,
    lead: Buffer.from(`${JSON.stringify(field.name)}:`),
    kind,
    wireType: wireTypes[kind]!,
    repeated,
    presence: !repeated && field.presence !== implicitPresence,
    zero: Buffer.from(repeated ? "[]" : zeroOf(kind, named)),
    oneof: field.oneof === undefined ? undefined : field.parent.oneofs.indexOf(field.oneof),
    message: kind === jsonKind.message || kind === jsonKind.wrapper ? planInner(message!) : undefined,
    names: named === undefined ? undefined : enumNames(named),
  };
}

/** FeatureSet_FieldPresence.IMPLICIT of descriptor.proto. */
const implicitPresence = 2;

function messageKind(message: DescMessage): number {
  if (message.typeName === "google.protobuf.Timestamp") return jsonKind.timestamp;
  return isWrapperDesc(message) ? jsonKind.wrapper : jsonKind.message;
}

/** The first of several names for one number. */
function enumNames({ values }: DescEnum): ReadonlyMap<number, Buffer> {
  const names = new Map<number, Buffer>();
  for (const { number, name } of values)
    if (!names.has(number)) names.set(number, Buffer.from(JSON.stringify(name)));
  return names;
}

function zeroOf(kind: number, named: DescEnum | undefined): string {
  if (named !== undefined) return enumNames(named).get(0)?.toString() ?? "0";
  if (kind === jsonKind.text || kind === jsonKind.bytes) return '""';
  if (kind === jsonKind.bool) return "false";
  return kind >= jsonKind.uint64 && kind <= jsonKind.sfixed64 ? '"0"' : "0";
}

const scalarKinds: Readonly<Record<ScalarType, number>> = {
  [ScalarType.STRING]: jsonKind.text,
  [ScalarType.BYTES]: jsonKind.bytes,
  [ScalarType.BOOL]: jsonKind.bool,
  [ScalarType.DOUBLE]: jsonKind.double,
  [ScalarType.FLOAT]: jsonKind.float,
  [ScalarType.UINT32]: jsonKind.uint32,
  [ScalarType.INT32]: jsonKind.int32,
  [ScalarType.SINT32]: jsonKind.sint32,
  [ScalarType.FIXED32]: jsonKind.fixed32,
  [ScalarType.SFIXED32]: jsonKind.sfixed32,
  [ScalarType.UINT64]: jsonKind.uint64,
  [ScalarType.INT64]: jsonKind.int64,
  [ScalarType.SINT64]: jsonKind.sint64,
  [ScalarType.FIXED64]: jsonKind.fixed64,
  [ScalarType.SFIXED64]: jsonKind.sfixed64,
};

const wireTypes: readonly number[] = Object.values(jsonKind).map((kind) => {
  switch (kind) {
    case jsonKind.double:
    case jsonKind.fixed64:
    case jsonKind.sfixed64:
      return wireType.fixed64;
    case jsonKind.float:
    case jsonKind.fixed32:
    case jsonKind.sfixed32:
      return wireType.fixed32;
    case jsonKind.text:
    case jsonKind.bytes:
    case jsonKind.message:
    case jsonKind.timestamp:
    case jsonKind.wrapper:
      return wireType.length;
    default:
      return wireType.varint;
  }
});
