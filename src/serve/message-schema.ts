import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { comments as datasource } from "../gen/example/gateway/v1/datasource_service_comments.ts";
import { comments as error } from "../gen/example/gateway/v1/error_comments.ts";
import { comments as gateway } from "../gen/example/gateway/v1/gateway_service_comments.ts";
import { comments as instance } from "../gen/example/gateway/v1/instance_service_comments.ts";
import { comments as runtime } from "../gen/example/gateway/v1/runtime_service_comments.ts";
import { comments as history } from "../gen/example/history/v1/history_service_comments.ts";
import { comments as rows } from "../gen/example/history/v1/rows_comments.ts";

const comments: Readonly<Record<string, string>> = {
  ...datasource,
  ...error,
  ...gateway,
  ...instance,
  ...runtime,
  ...history,
  ...rows,
};

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Field names as in proto files (history routes), or in lower camel case. */
type Naming = "proto" | "camel";

const integer = (digits: string) => ({ type: "string", pattern: `^${digits}$` });
const double = { anyOf: [{ type: "number" }, { enum: ["NaN", "Infinity", "-Infinity"] }] };

/** JSON Schemas of messages in REST's protobuf JSON: zero values present, 64-bit integers as strings. */
export class MessageSchemas {
  /** By name, for the components of a document. */
  readonly all: Record<string, JsonSchema> = {};

  /** A reference to a message's schema, which is then in `all`. */
  ref(message: DescMessage, naming: Naming): JsonSchema {
    const isHistory = message.typeName.startsWith("example.history.");
    const plain = message.typeName.replace(/^example\./, "");
    const name = isHistory && naming === "camel" ? `${plain}.camel` : plain;
    if (this.all[name] === undefined) {
      // before its fields, one of which may be this message again
      this.all[name] = {};
      this.all[name] = this.#schemaOf(message, naming);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  #schemaOf(message: DescMessage, naming: Naming): JsonSchema {
    const nameOf = (field: DescField) => (naming === "proto" ? field.name : field.jsonName);
    const properties = message.fields.map((field) => [
      nameOf(field),
      described(this.#fieldSchema(field, naming), `${message.typeName}.${field.name}`),
    ]);
    const required = message.fields.filter(isAlwaysThere).map(nameOf);
    const schema = { type: "object", properties: Object.fromEntries(properties), required };
    return described(schema, message.typeName);
  }

  #fieldSchema(field: DescField, naming: Naming): JsonSchema {
    const single = (given: {
      readonly scalar?: ScalarType | undefined;
      readonly message?: DescMessage | undefined;
    }) => (given.message === undefined ? scalarSchema(given.scalar) : this.ref(given.message, naming));
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: field.enum ? enumSchema(field.enum.values) : single(field) };
      case "map":
        return {
          type: "object",
          additionalProperties: field.enum ? enumSchema(field.enum.values) : single(field),
        };
      case "enum":
        return enumSchema(field.enum.values);
      default:
        return single(field);
    }
  }
}

/** Lists, maps, and required single values are always present; unset messages are left out. */
function isAlwaysThere(field: DescField): boolean {
  if (field.oneof !== undefined) return false;
  return field.fieldKind === "list" || field.fieldKind === "map" || isImplicit(field);
}

function isImplicit(field: DescField): boolean {
  return field.fieldKind !== "message" && !field.proto.proto3Optional;
}

function enumSchema(values: readonly { readonly name: string }[]): JsonSchema {
  return { type: "string", enum: values.map(({ name }) => name) };
}

function scalarSchema(scalar: ScalarType | undefined): JsonSchema {
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return double;
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return integer("\\d{1,20}");
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return integer("-?\\d{1,19}");
    default:
      return { type: "integer" };
  }
}

function described(schema: JsonSchema, name: string): JsonSchema {
  const description = comments[name];
  return description === undefined ? schema : { ...schema, description };
}
