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
} from "../gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../model/error.ts";
import type { DocumentKind, HistorySource, RunRef } from "../model/source.ts";
import { type TableName, tableNamed, tableNames } from "../model/table.ts";
import type { CursorPool } from "./cursor-pool.ts";
import { instanceList, resolveRun, runDocument, runList, storageFacts } from "./history-documents.ts";
import { recentRows } from "./recent-rows.ts";
import { rowPage } from "./row-pages.ts";
import { boundsOf, listingOf, requiredId } from "./row-selection.ts";
import type { RowForm } from "./row-wire.ts";
import { callOf, isJsonCall } from "./rpc-call.ts";

export interface HistoryServiceOptions {
  readonly source: HistorySource;
  readonly cursors: CursorPool;
  /** What the store is built on, such as simulator or archive. */
  readonly kind: string;
  readonly maxRowsPerAnswer: number | undefined;
}

/** Most fills that ListRecentFills gives, and as many as it gives where none is said. */
const recentMost = 10_000;
const recentUsual = 100;

interface PagedRequest {
  readonly selection?: RowSelection | undefined;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** HistoryService over any source. Its methods throw RunvaultErrors. */
export function historyService(options: HistoryServiceOptions): ServiceImpl<typeof HistoryService> {
  const { source, cursors } = options;

  const page = async <Desc extends DescMessage>(
    schema: Desc,
    tableName: string,
    form: RowForm,
    request: PagedRequest,
    context: HandlerContext,
  ): Promise<MessageShape<Desc>> => {
    const { signal } = context;
    const token = request.pageToken;
    const call = callOf(context);
    const table = tableNamed(tableName);
    call.table = table.name;
    const listing = await listingOf(source, table, request.selection, token, signal);
    Object.assign(call, {
      instance: listing.run.instanceId,
      run: listing.run.runId,
      ...(listing.from === undefined ? {} : { from: String(listing.from) }),
      ...(listing.to === undefined ? {} : { to: String(listing.to) }),
      ...(request.pageSize === 0 ? {} : { limit: request.pageSize }),
      continued: token !== "",
    });
    const limit = Math.min(
      request.pageSize || Number.POSITIVE_INFINITY,
      options.maxRowsPerAnswer ?? Number.POSITIVE_INFINITY,
    );
    const isJson = isJsonCall(context);
    const { wire, rows, nextToken } = await rowPage(source, cursors, {
      listing,
      form,
      limit: Number.isFinite(limit) ? limit : undefined,
      token,
      isJson,
      signal,
    });
    call.rows = rows;
    return withRows(schema, wire, isJson, { nextPageToken: nextToken });
  };
  const runOf = (request: { instanceId: string; runId: string }, signal: AbortSignal) =>
    resolveRun(source, requiredId("instance_id", request.instanceId), request.runId, signal);

  return {
    async getDatasource(_request, { signal }) {
      return {
        name: source.label,
        kind: options.kind,
        available: await answers(source, signal),
        tables: [...tableNames],
      };
    },
    listInstances: (_request, { signal }) => instanceList(source, signal),
    listRuns: ({ instanceId }, { signal }) => runList(source, requiredId("instance_id", instanceId), signal),
    async listResources(request, { signal }) {
      const run = await runOf(request, signal);
      return await documentMessage(source, run, "resources", ListResourcesResponseSchema, signal);
    },
    async getStorageFacts(request, { signal }) {
      const bounds = boundsOf(request);
      return await storageFacts(source, await runOf(request, signal), bounds, signal);
    },
    async getSummary(request, { signal }) {
      const run = await runOf(request, signal);
      return { summary: await documentMessage(source, run, "summary", SummarySchema, signal) };
    },
    async listRecentFills({ selection, limit }, context) {
      const { signal } = context;
      const table: TableName = "fills";
      if (limit > recentMost) {
        throw new RunvaultError("limit_exceeded", `limit is more than ${recentMost}`, {
          hint: "PreviewTable pages through all fills.",
        });
      }
      const listing = await listingOf(source, tableNamed(table), selection, "", signal);
      // no bounds in the notes: it is not known which window was read
      const call = Object.assign(callOf(context), {
        instance: listing.run.instanceId,
        run: listing.run.runId,
      });
      const { wire, rows } = await recentRows(source, listing, limit || recentUsual, signal);
      call.rows = rows;
      return withRows(ListRecentFillsResponseSchema, wire, isJsonCall(context), {});
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
 * A response with rows that are on the wire already. Unknown fields are written raw, so the rows, which are field 1,
 * become one unknown field from behind the first tag on; only JSON needs them as messages.
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

/** A stored document as the message it is. Throws `history_query_failed` where it is none. */
async function documentMessage<Desc extends DescMessage>(
  source: HistorySource,
  run: RunRef,
  kind: DocumentKind,
  schema: Desc,
  signal: AbortSignal,
): Promise<MessageShape<Desc>> {
  const bytes = await runDocument(source, run, kind, signal);
  try {
    const json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as JsonValue;
    // a gateway newer than this one may say more than there are fields for
    return fromJson(schema, json, { ignoreUnknownFields: true });
  } catch (error) {
    throw new RunvaultError("history_query_failed", `the stored ${kind} is no ${schema.typeName}`, {
      cause: error,
    });
  }
}

/** Whether the source answers at all. Any error is an answer to that question. */
async function answers(source: HistorySource, signal: AbortSignal): Promise<boolean> {
  try {
    await source.instances(signal);
    return true;
  } catch {
    return false;
  }
}
