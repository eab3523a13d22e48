import { ErrorEnvelopeSchema } from "../gen/example/gateway/v1/error_pb.ts";
import { HistoryErrorDetailSchema } from "../gen/example/history/v1/history_service_pb.ts";
import { filterNames, type Table, tableNames } from "../model/profile/table.ts";
import { type RowForm, rowForms } from "../model/row-answer.ts";
import { rowMessage } from "../row/wire/row-message.ts";
import { mostLogLines } from "./control/log-routes.ts";
import { wireCodes } from "./envelope.ts";
import { rowCountHeader, setAsideHeader } from "./history/history-routes.ts";
import { type JsonSchema, MessageSchemas } from "./message-schema.ts";
import { planeOf } from "./new-app.ts";
import type { ParameterName, RouteDoc } from "./route-doc.ts";

/** A registered route. */
export interface DocumentedRoute {
  readonly method: string;
  /** With parts such as `:id`, and `*` for the rest. */
  readonly url: string;
  readonly doc: RouteDoc;
}

export interface OpenApiOptions {
  readonly name: string;
  readonly version: string;
  readonly routes: readonly DocumentedRoute[];
  /** Every route requires a token. */
  readonly hasTokens: boolean;
  /** The source's row formats. */
  readonly forms: readonly RowForm[];
}

const time = {
  anyOf: [
    { type: "string", pattern: "^-?\\d{1,20}$", description: "UNIX nanoseconds." },
    {
      type: "string",
      format: "date-time",
      description: "RFC 3339; a date alone is midnight, without an offset it is UTC.",
    },
  ],
};

const parameters: Record<ParameterName, { readonly schema: JsonSchema; readonly description: string }> = {
  instance: { schema: { type: "string", minLength: 1 }, description: "Exact identifier of the instance." },
  run_id: { schema: { type: "string" }, description: "The run; empty means the instance's latest." },
  from: { schema: time, description: "Lower bound of ts_event, inclusive." },
  to: { schema: time, description: "Upper bound of ts_event, exclusive." },
  limit: { schema: { type: "integer", minimum: 1 }, description: "Maximum number of rows." },
  with_checksum: {
    schema: { type: "boolean" },
    description: "Also return row checksums, which requires a scan of the rows.",
  },
  table: { schema: { enum: ["", ...tableNames] }, description: "Only this table; empty means all." },
  tail: {
    schema: { type: "integer", minimum: 0, maximum: mostLogLines },
    description: "Number of recent lines; 0 means 100.",
  },
  follow: { schema: { type: "boolean" }, description: "Continue with new lines as they arrive." },
  ...(Object.fromEntries(
    filterNames.map((name) => [
      name,
      { schema: { type: "string" }, description: `Only rows of this ${name}; empty means no filter.` },
    ]),
  ) as unknown as Record<(typeof filterNames)[number], { schema: JsonSchema; description: string }>),
};

const inPath: Record<string, { readonly schema: JsonSchema; readonly description: string }> = {
  id: { schema: { type: "string", minLength: 1 }, description: "Exact identifier of the instance." },
  port: {
    schema: { type: "integer", minimum: 1, maximum: 65_535 },
    description: "Metrics port of an instance; /discovery names them.",
  },
  table: { schema: { enum: tableNames }, description: "The table." },
  ...Object.fromEntries(
    ["instance", "run", "name"].map((part) => [
      part,
      {
        schema: { type: "string", minLength: 1 },
        description: `The ${part} as listed addresses contain it.`,
      },
    ]),
  ),
  path: {
    schema: { type: "string", minLength: 1 },
    description: "The read model, such as resources or accounts/main: with unescaped slashes.",
  },
};

const exactNumber = "^(-?(0|[1-9]\\d*)(\\.\\d+)?)?$";
const json = "application/json";

/** The REST interface as an OpenAPI 3.1 document, generated from the registered routes. proto/ describes RPC. */
export function openApiDocument({ name, version, routes, hasTokens, forms }: OpenApiOptions): JsonSchema {
  const schemas = new MessageSchemas();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const { method, url, doc } of routes) {
    const path = pathOf(url);
    const answer = answersOf(doc, method === "HEAD", schemas, forms);
    const errors = planeOf(url) === "history" ? "HistoryError" : "ControlError";
    paths[path] ??= {};
    paths[path][method.toLowerCase()] = {
      operationId: operationId(method, path),
      summary: doc.summary,
      tags: [/^\/(?:api\/v1\/)?([a-z]+)/.exec(path)?.[1] ?? "service"],
      parameters: [
        ...[...path.matchAll(/\{(\w+)\}/g)].map(([, part]) => ({
          name: part,
          in: "path",
          required: true,
          ...inPath[part!],
        })),
        ...doc.query.map((query) => ({
          name: query,
          in: "query",
          required: query === "instance" && doc.ofAny !== true,
          ...parameters[query],
        })),
      ],
      responses: {
        ...answer,
        "4XX": { $ref: `#/components/responses/${errors}` },
        "5XX": { $ref: `#/components/responses/${errors}` },
      },
    };
  }
  const control = schemas.ref(ErrorEnvelopeSchema, "camel");
  const codes = `Codes by status: ${wireCodes("history").join(", ")}.`;
  const historyError = {
    type: "object",
    properties: {
      ok: { const: false },
      error: {
        type: "object",
        properties: { code: { type: "string", description: codes }, message: { type: "string" } },
        required: ["code", "message"],
      },
    },
    required: ["ok", "error"],
  };
  return {
    openapi: "3.1.0",
    info: {
      title: name,
      version,
      description:
        "History of trading runs, and the control and live planes. 64-bit integers are strings, times UNIX nanoseconds in " +
        "UTC, exact numbers decimal strings, empty if absent. Instances and runs are named by exact ids. A parameter " +
        "that a route does not list is refused. The same is available over RPC; see the protobuf packages.",
    },
    servers: [{ url: "/" }],
    ...(hasTokens ? { security: [{ bearer: [] }] } : { security: [] }),
    paths,
    components: {
      schemas: { ...schemas.all, HistoryError: historyError },
      responses: {
        HistoryError: {
          description: `An error of a history route; status and code identify it. ${codes}`,
          content: { [json]: { schema: { $ref: "#/components/schemas/HistoryError" } } },
        },
        ControlError: {
          description: `An error of another route; status and code identify it. Codes by status: ${wireCodes("control").join(", ")}.`,
          content: { [json]: { schema: control } },
        },
      },
      ...(hasTokens ? { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } } : {}),
    },
  };
}

function answersOf(
  { answer }: RouteDoc,
  isHead: boolean,
  schemas: MessageSchemas,
  forms: readonly RowForm[],
): Record<string, JsonSchema> {
  if (answer === "websocket") return { "101": { description: "Frames as live.proto describes them." } };
  const of = (statuses: readonly number[], description: string, content: JsonSchema, headers?: JsonSchema) =>
    Object.fromEntries(
      statuses.map((status) => [
        String(status),
        { description, ...(headers === undefined ? {} : { headers }), ...(isHead ? {} : { content }) },
      ]),
    );
  if ("rows" in answer) {
    const row = rowSchema(answer.rows, schemas);
    const content = Object.fromEntries(
      forms.map((form) => [
        rowForms[form].split(";", 1)[0]!,
        { schema: form === "ndjson" ? row : form === "csv" ? { type: "string" } : {} },
      ]),
    );
    const headers = {
      [rowCountHeader]: {
        description: "Number of rows in the answer, if known in advance.",
        schema: { type: "integer" },
      },
      [setAsideHeader]: {
        description: "Number of rows of the table that were set aside.",
        schema: { type: "integer" },
      },
    };
    return of(
      [200],
      `Rows of ${answer.rows.name} in key order; for NDJSON, the schema describes one line.`,
      content,
      headers,
    );
  }
  const { statuses = [200] } = answer;
  if (!("message" in answer)) {
    const { type, schema = { type: "string" }, orText } = answer;
    const text = orText === undefined ? {} : { [orText]: { schema: { type: "string" } } };
    return of(statuses, "The answer.", { [type]: { schema }, ...text });
  }
  const { message } = answer;
  const naming = message.file === HistoryErrorDetailSchema.file ? "proto" : "camel";
  return of(statuses, message.name, { [json]: { schema: schemas.ref(message, naming) } });
}

/** A row's message; the table says which texts are exact numbers. */
function rowSchema(table: Table, schemas: MessageSchemas): JsonSchema {
  const exact = table.columns.filter(({ kind }) => kind === "exact");
  const properties = Object.fromEntries(exact.map(({ name }) => [name, { pattern: exactNumber }]));
  const row = schemas.ref(rowMessage(table), "proto");
  return exact.length === 0 ? row : { allOf: [row, { properties }] };
}

/** A path with its parts in braces. */
function pathOf(url: string): string {
  return url.replace(/:(\w+)/g, "{$1}").replace("*", "{path}");
}

/** Such as getHistoryFills; unique even for the same route elsewhere. */
function operationId(method: string, path: string): string {
  const base = /^\/api\/v1(?=\/|$)/;
  const words = path
    .replace(base, "")
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean);
  const place = base.test(path) ? [] : ["at", "origin"];
  const slash = path.length > 1 && path.endsWith("/") ? ["slash"] : [];
  return [method.toLowerCase(), ...words, ...place, ...slash]
    .map((word, index) => (index === 0 ? word : word[0]!.toUpperCase() + word.slice(1)))
    .join("");
}
