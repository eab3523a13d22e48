import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { InstanceSchema } from "../gen/example/gateway/v1/instance_service_pb.ts";
import { RowSelectionSchema, SummarySchema } from "../gen/example/history/v1/history_service_pb.ts";
import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import type {
  DocumentKind,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
} from "../model/source.ts";
import type { Table, TableName } from "../model/table.ts";
import type { TimeBounds } from "../model/time.ts";
import { builtInRpcContract, type RpcContract } from "./contract.ts";
import { readFacts, readInstances, readRuns } from "./documents.ts";
import { Exchange } from "./exchange.ts";
import type { Gateway, GatewaySource } from "./gateway.ts";
import type { GatewayOptions } from "./options.ts";
import { pageLayout } from "./page-index.ts";
import { type PageSource, readPages } from "./page-reader.ts";
import { PageSize } from "./page-size.ts";
import {
  checkedTime,
  nullOn,
  placeOfRun,
  requireExactRun,
  requireInstance,
  requireRows,
} from "./request-checks.ts";
import { RowTranscoder } from "./row-transcoder.ts";
import { RpcClient } from "./rpc-client.ts";
import { documentBytes } from "./rpc-documents.ts";

/** A gateway over RPC, over connections that are another's to close. */
export interface RpcSource extends GatewaySource {
  /** Throws `route_not_found` or `not_a_gateway` where HistoryService answers neither under the base nor at the origin. */
  find(signal: AbortSignal): Promise<void>;
}

/**
 * Opens a gateway over Connect RPC; nothing is sent yet. Disposing it ends what is under way (`interrupted`).
 * Throws `invalid_argument` for options that do not hold.
 *
 * - `runs`, `facts`, `document`: null where REST would give null. A document's bytes are those that REST has for it.
 * - `rows`: as many pages as it takes, so no cap ends them. `stream_cut` where the pages stop making sense.
 */
export function openRpcGateway(options: GatewayOptions, contract: RpcContract = builtInRpcContract): Gateway {
  const exchange = new Exchange(options);
  const { find: _find, ...source } = rpcSource(exchange, contract);
  return { ...source, [Symbol.asyncDispose]: () => exchange[Symbol.asyncDispose]() };
}

/** The same over connections that are another's to close. */
export function rpcSource(exchange: Exchange, contract: RpcContract): RpcSource {
  const { address } = exchange;
  const { methods } = contract;
  const client = new RpcClient(exchange, contract);
  const learnt = new Map<TableName, Pick<PageSource, "size" | "transcoder">>();
  /** Tables whose own method the gateway does not have. */
  const previewed = new Set<TableName>();

  const placeOf = (method: DescMethodUnary, place: ErrorPlace): ErrorPlace => ({
    ...place,
    url: address.label + RpcClient.pathOf(method),
  });

  /** The bytes of a method's answer, as REST would have them, with the place to name in errors about them. */
  async function ask<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: Parameters<typeof client.unary<I, O>>[1],
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    bytesOf: (message: MessageShape<O>, here: ErrorPlace) => Uint8Array = (message) =>
      documentBytes(method.output, message, "history"),
  ): Promise<readonly [Uint8Array, ErrorPlace]> {
    using scope = exchange.scope(signal);
    const here = placeOf(method, place);
    const message = await client.unary(method, request, { place: here, signal: scope.signal });
    return [bytesOf(message, here), here];
  }

  async function askDocument(
    run: RunRef,
    kind: DocumentKind,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | null> {
    const { instanceId, runId } = run;
    const place = placeOfRun(run);
    switch (kind) {
      case "instance": {
        const [bytes] = await ask(methods.instance, { instanceId }, place, signal, ({ instance }, here) => {
          if (instance?.instanceId !== instanceId) throw anotherAnswer(here);
          return documentBytes(InstanceSchema, instance, "control");
        });
        return bytes;
      }
      case "run": {
        const [bytes, here] = await ask(methods.runs, { instanceId }, place, signal);
        return readRuns(bytes, instanceId, here).some((entry) => entry.runId === runId) ? bytes : null;
      }
      case "summary": {
        const [bytes] = await ask(methods.summary, run, place, signal, ({ summary }, here) => {
          // an id that is left out is empty here
          const names = (id: string | undefined, wanted: string) => id === "" || id === wanted;
          if (!names(summary?.instanceId, instanceId) || !names(summary?.runId, runId)) {
            throw anotherAnswer(here);
          }
          return documentBytes(SummarySchema, summary!, "history");
        });
        return bytes;
      }
      case "resources": {
        const [bytes] = await ask(methods.resources, run, place, signal);
        return bytes;
      }
      case "facts": {
        const [bytes, here] = await ask(methods.storage, run, place, signal);
        readFacts(bytes, here);
        return bytes;
      }
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
      request: (pageSize, pageToken) =>
        toBinary(method.input, create(method.input, { ...named, selection, pageSize, pageToken })),
    };
  }

  return {
    label: address.label,
    stats: exchange.stats,
    find: async (signal) => {
      using scope = exchange.scope(signal);
      await client.find(scope.signal);
    },

    async instances(signal): Promise<readonly InstanceEntry[]> {
      return readInstances(...(await ask(methods.instances, {}, {}, signal)));
    },

    async runs(instanceId, signal): Promise<readonly RunEntry[] | null> {
      requireInstance(instanceId);
      return await nullOn(["route_not_found"], async () => {
        const [bytes, here] = await ask(methods.runs, { instanceId }, { instance: instanceId }, signal);
        return readRuns(bytes, instanceId, here);
      });
    },

    async facts(run, within, signal): Promise<StorageFacts | null> {
      requireExactRun(run);
      const { instanceId, runId } = run;
      const request = { instanceId, runId, ...bounds(within) };
      return await nullOn(["route_not_found", "history_unavailable"], async () =>
        readFacts(...(await ask(methods.storage, request, placeOfRun(run), signal))),
      );
    },

    async document(run, kind, signal): Promise<Uint8Array | null> {
      requireExactRun(run);
      const { instanceId, runId } = run;
      return await nullOn(
        kind === "instance"
          ? ["route_not_found", "history_unavailable", "instance_not_found", "resource_not_found"]
          : ["route_not_found", "history_unavailable"],
        () => askDocument({ instanceId, runId }, kind, signal),
      );
    },

    async *rows(request): AsyncGenerator<Uint8Array, undefined> {
      requireExactRun(request);
      const { table } = requireRows(request);
      exchange.options.onRowPages?.();
      using scope = exchange.scope(request.signal);
      const { signal } = scope;
      using _place = await exchange.gate.rows(signal);
      const read = (method: DescMethodUnary) =>
        readPages(pagesOf(table, method, request), {
          exchange,
          client,
          contract,
          place: placeOf(method, { ...placeOfRun(request), table: table.name }),
          signal,
          limit: request.limit ?? Number.POSITIVE_INFINITY,
        });
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

function bounds({ from, to }: TimeBounds): { from?: bigint; to?: bigint } {
  // both zero is the whole run in this interface; an empty window is empty wherever it lies
  if (from === 0n && to === 0n) return { from: 1n, to: 1n };
  return {
    ...(from === undefined ? {} : { from: checkedTime(from) }),
    ...(to === undefined ? {} : { to: checkedTime(to) }),
  };
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

function anotherAnswer(place: ErrorPlace): RunvaultError {
  return new RunvaultError(
    "history_identity_conflict",
    "the document is about something else than asked for",
    {
      place,
    },
  );
}
