import type { DescMessage } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  GetStorageFactsResponseSchema,
  ListInstancesResponseSchema,
  ListResourcesResponseSchema,
  ListRunsResponseSchema,
  SummarySchema,
} from "../../gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../model/error.ts";
import { type Table, tables } from "../../model/profile/table.ts";
import { type RowAnswer, rowForms } from "../../model/row-answer.ts";
import type { HistorySource, RowRequest } from "../../model/source.ts";
import { idleDrop } from "../http/idle-reader.ts";
import { givenQueryOf, pathOf } from "../http/request-target.ts";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import { type ParameterName, queryOf, type RouteDoc } from "../route-doc.ts";
import type { DocumentRoute, WireHook } from "../wire-hook.ts";
import { acceptedEncoding, acceptedForms } from "./accepted-rows.ts";
import {
  instanceList,
  resolveRun,
  restJson,
  runDocument,
  runList,
  storageFacts,
} from "./history-documents.ts";
import { parseBounds, parseFactsRequest, parseRowQuery, required, rowParameters } from "./row-query.ts";
import { finishAnswer, type Sent, sendRows } from "./send-rows.ts";

export interface HistoryRoutesOptions {
  readonly source: HistorySource;
  readonly wire: WireHook | undefined;
  /** Leave out what the interface document does not have on REST. */
  readonly literal: boolean;
  readonly maxRowsPerAnswer: number | undefined;
  readonly compress: boolean;
  readonly onRequest: ((entry: RequestLogEntry) => void) | undefined;
  readonly onError: (error: RunvaultError) => void;
}

/** The history plane over REST: five documents and a path for each table, below `/history`. */
export function historyRoutes(app: FastifyInstance, options: HistoryRoutesOptions): void {
  const { source, literal, wire } = options;
  const document = (
    route: DocumentRoute,
    doc: RouteDoc,
    answer: (query: Record<string, string>, signal: AbortSignal) => Promise<string | Uint8Array>,
  ) => {
    app.get(`/history/${route}`, { config: { doc } }, async (request, reply) => {
      const signal = clientSignal(reply);
      await wire?.before(route, "rest", signal);
      const body = await answer(queryOf(request), signal);
      return reply.type("application/json; charset=utf-8").send(body);
    });
  };
  const ofRun = ["instance", "run_id"] as const;
  const says = (summary: string, message: DescMessage, query: readonly ParameterName[]): RouteDoc => ({
    summary,
    query,
    answer: { message },
  });
  const runOf = (query: Record<string, string>, signal: AbortSignal) =>
    resolveRun(source, required(query, "instance"), query.run_id ?? "", signal);

  document(
    "instances",
    says("Instances with history, and their runs.", ListInstancesResponseSchema, []),
    async (_query, signal) => restJson(ListInstancesResponseSchema, await instanceList(source, signal)),
  );
  document("summary", says("Summary of a run.", SummarySchema, ofRun), async (query, signal) =>
    runDocument(source, await runOf(query, signal), "summary", signal),
  );
  if (!literal) {
    document(
      "runs",
      says("Runs of an instance, oldest first.", ListRunsResponseSchema, ["instance"]),
      async (query, signal) =>
        restJson(ListRunsResponseSchema, await runList(source, required(query, "instance"), signal)),
    );
    document(
      "resources",
      says("Resources whose history a run holds.", ListResourcesResponseSchema, ofRun),
      async (query, signal) => runDocument(source, await runOf(query, signal), "resources", signal),
    );
    const facts = says("What is stored for a run, by table.", GetStorageFactsResponseSchema, [
      ...(["instance", "run_id", "from", "to", "with_checksum", "table"] as const),
    ]);
    document("storage", facts, async (query, signal) => {
      const bounds = parseBounds(query);
      const asked = parseFactsRequest(query);
      const facts = await storageFacts(source, await runOf(query, signal), bounds, asked, signal);
      return restJson(GetStorageFactsResponseSchema, facts);
    });
  }
  for (const table of tables) {
    const doc: RouteDoc = {
      summary: `Rows of ${table.name}: ${table.meaning}.`,
      query: rowParameters(table),
      answer: { rows: table },
    };
    app.get(table.path, { config: { doc } }, (request, reply) => answerRows(options, table, request, reply));
  }
}

async function answerRows(
  options: HistoryRoutesOptions,
  table: Table,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { source, wire } = options;
  const signal = clientSignal(reply);
  await wire?.before(table.name, "rest", signal);
  refuseHttp10(request);
  const query = parseRowQuery(table, givenQueryOf(request));
  const run = await resolveRun(source, query.instanceId, query.runId, signal);
  const limit = smaller(query.limit, options.maxRowsPerAnswer);
  const accepted = options.compress ? acceptedEncoding(request.headers["accept-encoding"]) : "identity";
  const asked = { ...run, ...query.bounds, table: table.name, limit, filters: query.filters, signal };
  const forms = acceptedForms(request.headers.accept);
  const made = (await source.answer?.(asked, { forms, zstd: accepted === "zstd" })) ?? null;
  const isHead = request.method === "HEAD";
  // if the source only has rows, the first one shows whether there are any
  if (made === null && isHead) await firstRow(source, asked);
  const answer = made ?? plainAnswer(isHead ? noRows() : source.rows(asked));
  const chunks = answer.chunks[Symbol.asyncIterator]();
  // the first chunk is read before the status is sent, so that errors of the request show
  const first = isHead ? { done: true as const, value: undefined } : await chunks.next();

  reply.hijack();
  const response = reply.raw;
  try {
    const vary = [
      // set earlier, such as that the answer depends on the origin
      ...[response.getHeader("vary") ?? []].flat().map(String),
      ...(answer.forms.length > 1 ? ["accept"] : []),
      ...(options.compress ? ["accept-encoding"] : []),
    ];
    const rows = answer.rows();
    response.writeHead(200, {
      "content-type": rowForms[answer.form],
      ...(vary.length === 0 ? {} : { vary: vary.join(", ") }),
      ...(accepted === "identity" ? {} : { "content-encoding": accepted }),
      ...(rows === undefined ? {} : { [rowCountHeader]: String(rows) }),
      ...(answer.setAside === 0 ? {} : { [setAsideHeader]: String(answer.setAside) }),
    });
    const stops = wire?.stops(table.name);
    const sent = isHead
      ? headSent
      : await sendRows(response, chunks, first, {
          encoding: answer.coding === "identity" ? accepted : "identity",
          countRows: answer.given ?? options.onRequest !== undefined,
          rowStops: stops?.rows ?? [],
          byteStops: stops?.bytes ?? [],
        });
    if (sent.error !== undefined && sent.ending !== "left") options.onError(sent.error);
    const error = idleDrop(response) ?? sent.error;
    const { from, to } = query.bounds;
    options.onRequest?.({
      method: request.method,
      path: pathOf(request),
      query: givenQueryOf(request),
      status: 200,
      ending: sent.ending,
      rows: sent.rows,
      bytes: sent.bytes,
      table: table.name,
      instance: run.instanceId,
      run: run.runId,
      ...(from === undefined ? {} : { from: String(from) }),
      ...(to === undefined ? {} : { to: String(to) }),
      ...(query.limit === undefined ? {} : { limit: query.limit }),
      ...(error === undefined ? {} : { error: `${error.code}: ${error.message}` }),
    });
    await finishAnswer(response, sent.ending);
  } catch (error) {
    // nobody else ends a hijacked answer: a failure here, such as an unwritable log, must not leave it open
    response.destroy();
    options.onError(RunvaultError.from(error));
  }
  return reply;
}

/** The result of a HEAD request. */
const headSent: Sent = { rows: 0, bytes: 0, ending: "whole" };

/** Throws the errors that reading the rows would. */
async function firstRow(source: HistorySource, request: RowRequest): Promise<void> {
  const chunks = source.rows({ ...request, limit: 1 })[Symbol.asyncIterator]();
  await chunks.next();
  await chunks.return?.();
}

/** An HTTP/1.0 answer ends with its connection, so a truncated one would look complete. */
function refuseHttp10({ raw }: FastifyRequest): void {
  if (raw.httpVersionMajor > 1 || raw.httpVersionMinor > 0) return;
  throw new RunvaultError(
    "invalid_argument",
    "rows are not sent over HTTP/1.0, where a truncated answer looks complete",
    {
      hint: "Use HTTP/1.1; a proxy may need a setting for it, nginx for example `proxy_http_version 1.1`.",
    },
  );
}

/** Number of rows in the answer, if known in advance. Gateways do not have this header. */
export const rowCountHeader = "runvault-rows";
/** Number of rows of the whole table that were set aside and accepted. Gateways do not have this header. */
export const setAsideHeader = "runvault-set-aside";

/** The answer of a source that only has rows. They are counted on the way if needed. */
function plainAnswer(chunks: AsyncIterable<Uint8Array>): RowAnswer {
  return {
    form: "ndjson",
    forms: ["ndjson"],
    coding: "identity",
    rows: () => undefined,
    bytes: undefined,
    setAside: 0,
    chunks,
    given: undefined,
  };
}

async function* noRows(): AsyncGenerator<Uint8Array> {}

/** Aborts when the client leaves. */
export function clientSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (reply.raw.writableFinished) return;
    controller.abort(new RunvaultError("stream_cut", "the client left before the answer was complete"));
  });
  return controller.signal;
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
