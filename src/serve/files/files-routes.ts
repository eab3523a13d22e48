import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { RunvaultError } from "../../model/error.ts";
import type { FileSource, ListedFile, OpenFile } from "../../model/file-source.ts";
import { isTableName, type TableName, tableHint } from "../../model/profile/table.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import { mayAsk, refuseUnlessAllowed, requireCaller } from "../auth/request-scope.ts";
import { acceptedType } from "../history/accepted-rows.ts";
import { resolveRun } from "../history/history-documents.ts";
import { clientSignal } from "../history/history-routes.ts";
import type { ServeLimits } from "../history/limited-source.ts";
import { type RawQuery, required } from "../history/row-query.ts";
import { finishAnswer, sendRows } from "../history/send-rows.ts";
import { idleDrop } from "../http/idle-reader.ts";
import { idOfPart, pathPart } from "../http/path-part.ts";
import { pathOf } from "../http/request-target.ts";
import { type Listening, reachedBy } from "../monitoring/monitoring-routes.ts";
import type { QuerySlots } from "../monitoring/query-slots.ts";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import { queryOf, type RouteDoc } from "../route-doc.ts";
import { askedRange, type FileRange } from "./byte-range.ts";

export interface FilesRoutesOptions {
  readonly files: FileSource;
  /** Determines an instance's latest run. */
  readonly source: HistorySource;
  readonly listening: () => Listening;
  /** Answers that need a token must not be cached for others. */
  readonly hasTokens: boolean;
  readonly limits: ServeLimits;
  readonly slots: QuerySlots | undefined;
  readonly onRequest: ((entry: RequestLogEntry) => void) | undefined;
  readonly onError: (error: RunvaultError) => void;
}

/** Number of tables of runs that a list leaves out because nothing is proven. */
export const withheldHeader = "runvault-withheld";

const jsonType = "application/json; charset=utf-8";
const textType = "text/plain; charset=utf-8";
/** The registered type for Parquet. */
const parquetType = "application/vnd.apache.parquet";
/** As long as replaced files are kept. */
const freshSeconds = 3600;

/** The archive's Parquet files: lists of them, and their bytes, also by range. */
export function filesRoutes(app: FastifyInstance, options: FilesRoutesOptions): void {
  const { files, source, slots } = options;
  const base = (request: FastifyRequest) =>
    `${request.protocol}://${reachedBy(request.host, options.listening())}${app.prefix}/files`;

  // DuckDB asks for a list's size before reading it as JSON
  const methods = ["GET", "HEAD"];
  const answer = ({ method }: FastifyRequest, reply: FastifyReply, type: string, text: string) => {
    reply.type(type).header("content-length", String(Buffer.byteLength(text)));
    return reply.send(method === "HEAD" ? "" : text);
  };

  const giveTables = async (request: FastifyRequest, reply: FastifyReply) => {
    queryOf(request);
    using _slot = slots?.take();
    const sums = await files.sums({ mayAsk });
    const tables = sums.map(({ table, ...sum }) => ({ table, url: `${base(request)}/${table}`, ...sum }));
    return answer(request, reply, jsonType, JSON.stringify({ tables }));
  };

  const giveList = async (request: FastifyRequest<{ Params: ListParams }>, reply: FastifyReply) => {
    const table = tableOf(request.params.table);
    const query = queryOf(request);
    using _slot = slots?.take();
    const run =
      query.run_id === undefined
        ? { instanceId: query.instance === undefined ? undefined : required(query, "instance") }
        : await resolveRun(source, required(query, "instance"), query.run_id, clientSignal(reply));
    const { files: found, withheld } = await files.list({ table, ...run, mayAsk });
    const listed = found.map((file) => ({ url: `${base(request)}/${urlPath(file)}`, file }));
    reply.header("vary", ["accept", ...[reply.raw.getHeader("vary") ?? []].flat()].join(", "));
    if (withheld.length > 0) reply.header(withheldHeader, String(withheld.length));
    if (acceptedType(request.headers.accept, ["application/json", "text/plain"]) === "text/plain") {
      return answer(request, reply, textType, listed.map(({ url }) => `${url}\n`).join(""));
    }
    const list = {
      files: listed.map(({ url, file }) => fileDocument(url, file)),
      withheld: withheld.map(({ instance, run: run_id, state }) => ({ instance, run_id, state })),
    };
    return answer(request, reply, jsonType, JSON.stringify(list));
  };

  app.route({ method: methods, url: "/files", config: { doc: tablesDoc }, handler: giveTables });
  app.route<{ Params: ListParams }>({
    method: methods,
    url: "/files/:table",
    config: { doc: listDoc },
    handler: giveList,
  });
  app.route<{ Params: FileParams }>({
    method: methods,
    url: "/files/:table/:instance/:run/:name",
    config: { doc: fileDoc },
    handler: (request, reply) => giveFile(options, request, reply),
  });
}

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };

function objectOf(properties: Readonly<Record<string, object>>) {
  return { type: "object", properties, required: Object.keys(properties) };
}

function listOf(properties: Readonly<Record<string, object>>) {
  return { type: "array", items: objectOf(properties) };
}

const tablesDoc: RouteDoc = {
  summary: "The tables that have Parquet.",
  query: [],
  answer: {
    type: "application/json",
    schema: objectOf({
      tables: listOf({ table: text, url: text, runs: count, files: count, rows: count, bytes: count }),
    }),
  },
};

const listDoc: RouteDoc = {
  summary: "The Parquet files of a table: of all runs, of an instance's runs, or of one run.",
  query: ["instance", "run_id"],
  ofAny: true,
  answer: {
    type: "application/json",
    orText: "text/plain",
    schema: objectOf({
      files: listOf({
        url: text,
        instance: text,
        run_id: text,
        state: text,
        generation: count,
        bucket: text,
        rows: count,
        bytes: count,
        min_ts_event: text,
        max_ts_event: text,
        sha256: text,
      }),
      withheld: listOf({ instance: text, run_id: text, state: { type: ["string", "null"] } }),
    }),
  },
};

const fileDoc: RouteDoc = {
  summary: "The bytes of a file, or a range of them.",
  query: [],
  answer: { type: parquetType, schema: {}, statuses: [200, 206] },
};

interface ListParams {
  readonly table: string;
}

interface FileParams extends ListParams {
  readonly instance: string;
  readonly run: string;
  readonly name: string;
}

async function giveFile(
  options: FilesRoutesOptions,
  request: FastifyRequest<{ Params: FileParams }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { params, method } = request;
  const run = { instanceId: idOfPart(params.instance), runId: idOfPart(params.run) };
  refuseUnlessAllowed(requireCaller(request.scope?.caller), run.instanceId);
  const table = tableOf(params.table);
  queryOf(request);
  // a HEAD request also opens and hashes the file
  using _slot = options.slots?.take();
  await using file = await options.files.open(run, table, params.name);
  const etag = `"${file.sha256}"`;
  const { status, range } = askedRange(method, request.headers, etag, file.bytes);
  const headers = {
    "accept-ranges": "bytes",
    etag,
    "cache-control": `${options.hasTokens ? "private" : "public"}, max-age=${freshSeconds}, immutable`,
  };
  if (status === 304) return reply.code(304).headers(headers).send();
  if (status === 412 || status === 416) {
    reply.code(status).type(jsonType).headers(headers);
    if (status === 416) reply.header("content-range", `bytes */${file.bytes}`);
    const error =
      status === 416
        ? { code: "range_not_satisfiable", message: `the file has ${file.bytes} bytes` }
        : { code: "precondition_failed", message: "the file does not match If-Match" };
    return reply.send(JSON.stringify({ ok: false, error }));
  }
  if (method === "GET") refuseTooLarge(range, options.limits, { ...run, table });
  const answer = { status, range, headers };
  await sendFile(options, request, reply, { file, run, table, answer });
  return reply;
}

/** Sends the head and, except for HEAD, the bytes; always ends the answer. */
async function sendFile(
  { onRequest, onError }: FilesRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  given: {
    readonly file: OpenFile;
    readonly run: RunRef;
    readonly table: TableName;
    readonly answer: {
      readonly status: number;
      readonly range: FileRange;
      readonly headers: Readonly<Record<string, string>>;
    };
  },
): Promise<void> {
  const { file, run, table, answer } = given;
  const { from, to } = answer.range;
  const { method, query } = request;
  reply.hijack();
  const response = reply.raw;
  try {
    response.writeHead(answer.status, {
      ...answer.headers,
      "content-type": parquetType,
      "content-length": String(to - from),
      ...(answer.status === 206 ? { "content-range": `bytes ${from}-${to - 1}/${file.bytes}` } : {}),
    });
    const chunks = file.read(from, method === "HEAD" ? from : to);
    const sent = await sendRows(response, chunks, await chunks.next(), {
      encoding: "identity",
      countRows: false,
      rowStops: [],
      byteStops: [],
    });
    if (sent.error !== undefined && sent.ending !== "left") onError(sent.error);
    const error = idleDrop(response) ?? sent.error;
    onRequest?.({
      method,
      path: pathOf(request),
      query: query as RawQuery,
      status: answer.status,
      ending: sent.ending,
      rows: 0,
      bytes: sent.bytes,
      table,
      instance: run.instanceId,
      run: run.runId,
      ...(error === undefined ? {} : { error: `${error.code}: ${error.message}` }),
    });
    await finishAnswer(response, sent.ending);
  } catch (error) {
    // nobody else ends a hijacked answer
    response.destroy();
    onError(RunvaultError.from(error));
  }
}

/** Throws `resource_not_found`. */
function tableOf(name: string): TableName {
  if (isTableName(name)) return name;
  throw new RunvaultError("resource_not_found", `there is no table ${JSON.stringify(name)}`, {
    hint: tableHint(name),
  });
}

function refuseTooLarge({ from, to }: FileRange, { bytes }: ServeLimits, run: RunRef & { table: string }) {
  if (bytes === undefined || to - from <= bytes) return;
  throw new RunvaultError("limit_exceeded", `the answer exceeds ${bytes} bytes, the limit of this server`, {
    place: { instance: run.instanceId, run: run.runId, table: run.table },
    hint: "Request smaller parts with Range.",
  });
}

function urlPath({ table, instance, run, name }: ListedFile): string {
  return [table, pathPart(instance), pathPart(run), name].join("/");
}

function fileDocument(url: string, file: ListedFile): Readonly<Record<string, unknown>> {
  const { instance, run, state, generation, bucket, rows, bytes, sha256, minTsEvent, maxTsEvent } = file;
  return {
    url,
    instance,
    run_id: run,
    state,
    generation,
    bucket,
    rows,
    bytes,
    min_ts_event: minTsEvent,
    max_ts_event: maxTsEvent,
    sha256,
  };
}
