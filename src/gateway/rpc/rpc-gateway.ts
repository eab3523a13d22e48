import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { InstanceSchema } from "../../gen/example/gateway/v1/instance_service_pb.ts";
import { RowSelectionSchema, SummarySchema } from "../../gen/example/history/v1/history_service_pb.ts";
import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { DocumentKind, RowRequest, RunRef } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { pageLayout } from "../../row/wire/page-index.ts";
import { RowTranscoder } from "../../row/wire/row-transcoder.ts";
import { builtInRpcContract, type RpcContract } from "../contract.ts";
import { documentSource } from "../document-source.ts";
import { otherThanAsked, ownText, readCurrentRun, readFacts, readInstances, readRuns } from "../documents.ts";
import type { Gateway, GatewaySource } from "../gateway.ts";
import { withinReach } from "../http/error-reach.ts";
import { HttpSession } from "../http/http-session.ts";
import type { GatewayOptions } from "../options.ts";
import { absentCodes, checkedBounds, placeOfRun, requireExactRun, requireRows } from "../request-checks.ts";
import { connectExchange } from "./connect-exchange.ts";
import { type PageSource, readPages } from "./page-reader.ts";
import { PageSize } from "./page-size.ts";
import { RpcClient } from "./rpc-client.ts";
import { documentBytes } from "./rpc-documents.ts";
import { methodPath } from "./rpc-exchange.ts";
import { seenByKey } from "./seen-pages.ts";
import type { UnknownFields } from "./unknown-fields.ts";

/** A gateway over RPC whose connections the caller closes. */
export interface RpcSource extends GatewaySource {
  /** Throws `route_not_found` or `not_a_gateway` if HistoryService answers neither under the base nor at the origin. */
  find(signal: AbortSignal): Promise<void>;
}

/**
 * Opens a gateway over Connect RPC; nothing is sent yet. Disposing it ends requests in progress (`interrupted`).
 * Throws `invalid_argument` for invalid options.
 *
 * - `runs`, `facts`, `document`: null where REST would give null. A document has the same bytes as over REST.
 * - `rows`: as many pages as it takes, so no cap ends them. `stream_cut` if the pages are inconsistent.
 */
export function openRpcGateway(options: GatewayOptions, contract: RpcContract = builtInRpcContract): Gateway {
  const session = new HttpSession(options);
  const { find: _find, ...source } = rpcSource(session, contract);
  return { ...source, [Symbol.asyncDispose]: () => session[Symbol.asyncDispose]() };
}

/** The same over connections that the caller closes. */
export function rpcSource(session: HttpSession, contract: RpcContract): RpcSource {
  const { address } = session;
  const { methods } = contract;
  const client = new RpcClient(session, connectExchange(session, contract), methods.datasource);
  const learnt = new Map<TableName, Pick<PageSource, "size" | "transcoder">>();
  /** Tables for which the gateway lacks its own method. */
  const previewed = new Set<TableName>();

  const placeOf = (method: DescMethodUnary, place: ErrorPlace): ErrorPlace => ({
    ...place,
    url: address.label + methodPath(method),
  });

  /** Reads a method's answer, with the place to name in errors about it. */
  async function ask<I extends DescMessage, O extends DescMessage, T>(
    method: DescMethodUnary<I, O>,
    request: Parameters<typeof client.unary<I, O>>[1],
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (message: MessageShape<O>, here: ErrorPlace) => T | Promise<T>,
  ): Promise<T> {
    using scope = session.scope(signal);
    const here = placeOf(method, place);
    try {
      return await read(await client.unary(method, request, { place: here, signal: scope.signal }), here);
    } catch (thrown) {
      throw withinReach(thrown, place);
    }
  }

  /** Reads the bytes that REST would send for a method's answer. */
  function askBytes<I extends DescMessage, O extends DescMessage, T>(
    method: DescMethodUnary<I, O>,
    request: Parameters<typeof client.unary<I, O>>[1],
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, here: ErrorPlace, unknown: UnknownFields) => T | Promise<T>,
  ): Promise<T> {
    return ask(method, request, place, signal, (message, here) =>
      read(documentBytes(method.output, message, "history"), here, session.unknown),
    );
  }

  /** Reads the bytes that REST would send for an instance. */
  function askInstance<T>(
    instanceId: string,
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, here: ErrorPlace) => T | Promise<T>,
  ): Promise<T> {
    return ask(methods.instance, { instanceId }, place, signal, ({ instance }, here) => {
      if (instance?.instanceId !== instanceId)
        throw otherThanAsked(here, { instanceId: instance?.instanceId ?? "" });
      return read(documentBytes(InstanceSchema, instance, "control"), here);
    });
  }

  async function askDocument(
    run: RunRef,
    kind: DocumentKind,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | null> {
    const { instanceId, runId } = run;
    const place = placeOfRun(run);
    switch (kind) {
      case "instance":
        return await askInstance(instanceId, place, signal, (bytes) => bytes);
      case "run":
        return await askBytes(methods.runs, { instanceId }, place, signal, async (bytes, here) =>
          ownText(await readRuns(bytes, instanceId, here, session.unknown), run),
        );
      case "summary":
        return await ask(methods.summary, run, place, signal, ({ summary }, here) => {
          // a missing id is empty here
          const names = (id: string | undefined, wanted: string) => id === "" || id === wanted;
          if (!names(summary?.instanceId, instanceId) || !names(summary?.runId, runId)) {
            throw otherThanAsked(here, {
              runId: summary?.runId ?? "",
              instanceId: summary?.instanceId ?? "",
            });
          }
          return documentBytes(SummarySchema, summary!, "history");
        });
      case "resources":
        return await askBytes(methods.resources, run, place, signal, (bytes) => bytes);
      case "facts":
        return await askBytes(methods.storage, run, place, signal, async (bytes, here) => {
          await readFacts(bytes, here, session.unknown);
          return bytes;
        });
    }
  }

  function pagesOf(table: Table, method: DescMethodUnary, request: RowRequest): PageSource {
    const selection = create(RowSelectionSchema, {
      instanceId: request.instanceId,
      runId: request.runId,
      ...bounds(request),
      ...filterFields(request),
    });
    const named = method.input.field.table === undefined ? {} : { table: table.name };
    const kept = learnt.get(table.name) ?? {
      size: new PageSize(contract.pageBytes),
      transcoder: new RowTranscoder(table),
    };
    learnt.set(table.name, kept);
    return {
      table,
      method,
      layout: pageLayout(table, method.output),
      ...kept,
      seen: seenByKey(),
      // each row contains both ids, each with a tag and a length
      leastRowBytes: Buffer.byteLength(request.instanceId) + Buffer.byteLength(request.runId) + 4,
      request: (pageSize, pageToken) =>
        toBinary(method.input, create(method.input, { ...named, selection, pageSize, pageToken })),
    };
  }

  const documents = documentSource(session, {
    by: "RPC",
    instances: (signal) => askBytes(methods.instances, {}, {}, signal, readInstances),

    runs: (instanceId, signal) =>
      askBytes(methods.runs, { instanceId }, { instance: instanceId }, signal, (bytes, here) =>
        readRuns(bytes, instanceId, here, session.unknown),
      ),

    currentRun: (instanceId, signal) =>
      askInstance(instanceId, { instance: instanceId }, signal, readCurrentRun),

    facts({ instanceId, runId }, within, { withHash: withChecksum = false, table }, signal) {
      const request = { instanceId, runId, ...bounds(within), withChecksum, table: table ?? "" };
      const place = placeOfRun({ instanceId, runId });
      return askBytes(methods.storage, request, place, signal, (bytes, here, unknown) =>
        readFacts(bytes, here, unknown, table),
      );
    },

    document: ({ instanceId, runId }, kind, signal) => askDocument({ instanceId, runId }, kind, signal),
    absent: { currentRun: notInstances, document: absentCodes, instance: notInstances },
  });

  return {
    ...documents,
    find: async (signal) => {
      using scope = session.scope(signal);
      await client.find(scope.signal);
    },

    async *rows(request): AsyncGenerator<Uint8Array, undefined> {
      requireExactRun(request);
      const { table } = requireRows(request);
      session.options.onRowBuffers?.();
      using scope = session.scope(request.signal);
      const { signal } = scope;
      using _place = await session.gate.rows(signal);
      const route = { ...placeOfRun(request), table: table.name };
      async function* read(method: DescMethodUnary) {
        try {
          yield* readPages(pagesOf(table, method, request), {
            session,
            client,
            rules: contract,
            place: placeOf(method, route),
            signal,
            limit: request.limit ?? Number.POSITIVE_INFINITY,
            pageRows: request.pageRows,
            rate: session.rowRate(placeOf(method, route), request.onBody),
          });
        } catch (thrown) {
          throw withinReach(thrown, route);
        }
      }
      const own = previewed.has(table.name) ? undefined : methods.tables[table.name];
      if (own !== undefined) {
        let began = false;
        try {
          for await (const chunk of read(own)) {
            began = true;
            yield chunk;
          }
          return;
        } catch (thrown) {
          if (began || !(thrown instanceof RunvaultError) || thrown.code !== "route_not_found") throw thrown;
          previewed.add(table.name);
        }
      }
      yield* read(methods.preview);
    },
  };
}

/** Codes for an instance that the control plane does not have, or if there is no control plane. */
const notInstances: readonly ErrorCode[] = [...absentCodes, "instance_not_found", "resource_not_found"];

function bounds(asked: TimeBounds): TimeBounds {
  // in this interface two zeros mean the whole run; an empty window is empty wherever it lies
  if (asked.from === 0n && asked.to === 0n) return { from: 1n, to: 1n };
  return checkedBounds(asked);
}

function filterFields(request: RowRequest): Record<string, string> {
  const { filters } = requireRows(request);
  return Object.fromEntries(
    filters.map(([name, value]) => [
      RowSelectionSchema.fields.find((field) => field.name === name)!.localName,
      value,
    ]),
  );
}
