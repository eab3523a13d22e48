import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type HistoryService,
  ListMarketBarsResponseSchema,
  ListPortfolioMetricsResponseSchema,
  ListPortfolioSeriesResponseSchema,
  ListRecentFillsResponseSchema,
  ListResourcesResponseSchema,
  PreviewTableResponseSchema,
  type RowSelection,
  SummarySchema,
} from "../../gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import { tableNamed, tableNames } from "../../model/profile/table.ts";
import type { DocumentKind, HistorySource, RunRef } from "../../model/source.ts";
import type { RowForm } from "../../row/wire/row-wire.ts";
import { recentRows } from "../live/recent-rows.ts";
import { callOf, isJsonCall, type RpcCall } from "../rpc/rpc-call.ts";
import type { Asked, WireHook } from "../wire-hook.ts";
import type { CursorPool } from "./cursor-pool.ts";
import { instanceList, resolveRun, runDocument, runList, storageFacts } from "./history-documents.ts";
import type { PageTokens } from "./page-token.ts";
import { rowPage } from "./row-pages.ts";
import { boundsOf, listingOf, requiredId } from "./row-selection.ts";

export interface HistoryServiceOptions {
  readonly source: HistorySource;
  readonly cursors: CursorPool;
  readonly pageTokens: PageTokens;
  readonly wire: WireHook | undefined;
  /** The service's name for people. */
  readonly name: string;
  /** The kind of store, such as simulator or archive. */
  readonly kind: string;
  readonly maxRowsPerAnswer: number | undefined;
}

/** Maximum and default number of fills of ListRecentFills. */
const recentMost = 10_000;
const recentUsual = 100;

interface PagedRequest {
  readonly selection?: RowSelection | undefined;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** HistoryService over any source. Its methods throw RunvaultErrors. */
export function historyService(options: HistoryServiceOptions): ServiceImpl<typeof HistoryService> {
  const { source, cursors, pageTokens, wire } = options;

  const page = async <Desc extends DescMessage>(
    schema: Desc,
    tableName: string,
    form: RowForm,
    request: PagedRequest,
    context: HandlerContext,
  ): Promise<MessageShape<Desc>> => {
    const { signal } = context;
    const { pageSize, pageToken: token } = request;
    const table = tableNamed(tableName);
    const call = await begun(table.name, context);
    call.noted = { table: table.name };
    const listing = await listingOf(source, table, request.selection, token, signal);
    const { run, from, to } = listing;
    call.noted = {
      table: table.name,
      instance: run.instanceId,
      run: run.runId,
      ...(from === undefined ? {} : { from: String(from) }),
      ...(to === undefined ? {} : { to: String(to) }),
      ...(pageSize === 0 ? {} : { limit: pageSize }),
      continued: token !== "",
    };
    const number = wire === undefined || token === "" ? 1 : pageTokens.parse(token, listing).page;
    const { most, change } = (await wire?.beforePage({ ...run, table: table.name }, number)) ?? {};
    const limits = [pageSize || undefined, options.maxRowsPerAnswer, most];
    const limit = limits.filter((given) => given !== undefined).sort((a, b) => a - b)[0];
    const isJson = isJsonCall(context);
    const made = await rowPage(source, cursors, pageTokens, {
      listing,
      form,
      limit,
      token,
      isJson,
      signal,
      change,
    });
    const page = wire?.page(table.name, token, made) ?? made;
    call.rows = page.rows;
    const message = withRows(schema, page.wire, isJson, { nextPageToken: page.nextToken });
    const field = isJson ? undefined : wire?.pageField(table.name, made);
    if (field !== undefined) message.$unknown = [...(message.$unknown ?? []), field];
    return message;
  };
  /** The notes of a call, unless a wire hook refuses it. */
  const begun = async (asked: Asked, context: HandlerContext): Promise<RpcCall> => {
    const call = callOf(context);
    call.asked = asked;
    await wire?.before(asked, "rpc", context.signal);
    return call;
  };
  const runOf = (request: { instanceId: string; runId: string }, signal: AbortSignal) =>
    resolveRun(source, requiredId("instance_id", request.instanceId), request.runId, signal);

  return {
    async getDatasource(_request, { signal }) {
      return {
        name: options.name,
        kind: options.kind,
        available: await answers(source, signal),
        tables: [...tableNames],
      };
    },
    async listInstances(_request, context) {
      await begun("instances", context);
      return await instanceList(source, context.signal);
    },
    async listRuns({ instanceId }, context) {
      await begun("runs", context);
      return await runList(source, requiredId("instance_id", instanceId), context.signal);
    },
    async listResources(request, context) {
      await begun("resources", context);
      const { signal } = context;
      const run = await runOf(request, signal);
      return await documentMessage(source, run, "resources", ListResourcesResponseSchema, signal);
    },
    async getStorageFacts(request, context) {
      await begun("storage", context);
      const { signal } = context;
      const bounds = boundsOf(request);
      const { withChecksum: withHash, table } = request;
      const asked = { withHash, table: table === "" ? undefined : tableNamed(table).name };
      return await storageFacts(source, await runOf(request, signal), bounds, asked, signal);
    },
    async getSummary(request, context) {
      await begun("summary", context);
      const { signal } = context;
      const run = await runOf(request, signal);
      return { summary: await documentMessage(source, run, "summary", SummarySchema, signal) };
    },
    async listRecentFills({ selection, limit }, context) {
      const { signal } = context;
      const call = await begun("fills", context);
      const mostRecent = Math.min(recentMost, options.maxRowsPerAnswer ?? recentMost);
      if (limit > recentMost) {
        throw new RunvaultError("limit_exceeded", `limit must be at most ${recentMost}`, {
          hint: "Use PreviewTable to page through all fills.",
        });
      }
      const listing = await listingOf(source, tableNamed("fills"), selection, "", signal);
      // the table is not noted, because the window read is unknown
      call.noted = { instance: listing.run.instanceId, run: listing.run.runId };
      const recent = await recentRows(source, listing, Math.min(limit || recentUsual, mostRecent), signal);
      call.rows = recent.rows;
      return withRows(ListRecentFillsResponseSchema, recent.wire, isJsonCall(context), {});
    },
    listPortfolioSeries: (request, context) =>
      page(ListPortfolioSeriesResponseSchema, "equity", "plain", request, context),
    listPortfolioMetrics: (request, context) =>
      page(ListPortfolioMetricsResponseSchema, "metrics", "plain", request, context),
    listMarketBars: (request, context) =>
      page(ListMarketBarsResponseSchema, "bars", "plain", request, context),
    previewTable: (request, context) =>
      page(PreviewTableResponseSchema, request.table, "preview", request, context),
  };
}

/**
 * A response whose rows are already encoded. Unknown fields are written raw, so the rows (field 1) are passed as one
 * unknown field, without the first tag; only JSON needs them as messages.
 */
function withRows<Desc extends DescMessage>(
  schema: Desc,
  wire: Uint8Array,
  isJson: boolean,
  rest: Record<string, unknown>,
): MessageShape<Desc> {
  const message = isJson ? fromBinary(schema, wire) : create(schema);
  Object.assign(message, rest);
  if (!isJson && wire.length > 0) message.$unknown = [{ no: 1, wireType: 2, data: wire.subarray(1) }];
  return message;
}

/**
 * A stored document as a message. Throws `history_query_failed` if it does not fit, and `history_unavailable` if it is
 * in a foreign gateway's format, which the message would show only as zeros.
 */
async function documentMessage<Desc extends DescMessage>(
  source: HistorySource,
  run: RunRef,
  kind: DocumentKind,
  schema: Desc,
  signal: AbortSignal,
): Promise<MessageShape<Desc>> {
  const bytes = await runDocument(source, run, kind, signal);
  let json: JsonValue;
  let message: MessageShape<Desc>;
  try {
    json = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as JsonValue;
    // a newer gateway may have further fields
    message = fromJson(schema, json, { ignoreUnknownFields: true });
  } catch (error) {
    throw new RunvaultError(
      "history_query_failed",
      `the stored ${kind} document is not a ${schema.typeName}`,
      {
        cause: error,
      },
    );
  }
  if (isForeign(schema, json)) {
    const { instanceId: instance, runId } = run;
    throw new RunvaultError(
      "history_unavailable",
      `the ${kind} document of run ${JSON.stringify(runId)} is in its gateway's own format and not a ${schema.typeName}`,
      { place: { instance, run: runId }, hint: "Request it over REST, which returns it unchanged." },
    );
  }
  return message;
}

/**
 * Whether a document is foreign to the message: they share no field; or the message names a run, and the document names
 * none but has other fields.
 */
function isForeign({ fields }: DescMessage, json: JsonValue): boolean {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return false;
  const names = fields.flatMap(({ name, jsonName }) => [name, jsonName]);
  const keys = Object.keys(json);
  const known = keys.filter((key) => names.includes(key));
  if (known.length === keys.length) return false;
  return names.includes("run_id")
    ? !known.includes("run_id") && !known.includes("runId")
    : known.length === 0;
}

/** Whether the source answers at all; an error is an answer too. */
async function answers(source: HistorySource, signal: AbortSignal): Promise<boolean> {
  try {
    await source.instances(signal);
    return true;
  } catch {
    return false;
  }
}
