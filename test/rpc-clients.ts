import { type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import {
  HistoryErrorDetailSchema,
  HistoryService,
} from "../src/gen/example/history/v1/history_service_pb.ts";
import { canonicalLine, type Row } from "../src/model/line.ts";
import { type TableName, tableNamed } from "../src/model/table.ts";
import type { Served } from "../src/serve/server.ts";

/** Every way in which connect-node speaks to a server over HTTP/1.1: protocols, codecs, and both places. */
export const dialects = ["connect binary", "connect json", "grpc-web binary", "grpc-web json"] as const;
export type Dialect = (typeof dialects)[number];

/** Below the origin, or below the base address. */
export type Place = "origin" | "base";

export interface RpcSettings {
  readonly dialect?: Dialect;
  readonly place?: Place;
  readonly headers?: Record<string, string>;
  readonly defaultTimeoutMs?: number;
}

export function transportTo({ url }: Pick<Served, "url">, settings: RpcSettings = {}): Transport {
  const { dialect = "connect binary", place = "origin", headers = {}, defaultTimeoutMs } = settings;
  const make = dialect.startsWith("connect") ? createConnectTransport : createGrpcWebTransport;
  return make({
    baseUrl: place === "base" ? url : new URL(url).origin,
    httpVersion: "1.1",
    useBinaryFormat: dialect.endsWith("binary"),
    ...(defaultTimeoutMs === undefined ? {} : { defaultTimeoutMs }),
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
        return next(request);
      },
    ],
  });
}

export function historyClient(
  server: Pick<Served, "url">,
  settings?: RpcSettings,
): Client<typeof HistoryService> {
  return createClient(HistoryService, transportTo(server, settings));
}

/** The code of a call's failure and the history code in its detail; `ok` where it did not fail. */
export async function failure(call: Promise<unknown>): Promise<{ code: number; history: string } | "ok"> {
  try {
    await call;
    return "ok";
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [detail] = error.findDetails(HistoryErrorDetailSchema);
    return { code: error.code, history: detail?.code ?? "" };
  }
}

/** A row message as its canonical line. */
export function lineOf(table: TableName, message: unknown): string {
  const { message: schema } = tableNamed(table);
  const json = toJson(schema, message as MessageShape<typeof schema>, {
    useProtoFieldName: true,
    alwaysEmitImplicit: true,
  });
  return canonicalLine(tableNamed(table), json as Row);
}

/** All pages of a table by PreviewTable, as canonical lines. */
export async function pagesOf(
  client: Client<typeof HistoryService>,
  table: TableName,
  options: { pageSize?: number; from?: bigint; to?: bigint; symbol?: string; between?: () => unknown } = {},
): Promise<string[][]> {
  const { pageSize = 0, between, ...rest } = options;
  const pages: string[][] = [];
  for (let pageToken = ""; ; ) {
    const selection = { instanceId: "alpha", runId: "r1", ...rest };
    const answer = await client.previewTable({ table, selection, pageSize, pageToken });
    pages.push(answer.rows.map(({ row }) => lineOf(table, row.value)));
    pageToken = answer.nextPageToken;
    if (pageToken === "") return pages;
    await between?.();
  }
}
