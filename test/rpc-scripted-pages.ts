import type { IncomingMessage, ServerResponse } from "node:http";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import {
  GetDatasourceResponseSchema,
  HistoryErrorDetailSchema,
  type PreviewTableRequest,
  PreviewTableRequestSchema,
  PreviewTableResponseSchema,
} from "../src/gen/example/history/v1/history_service_pb.ts";
import { type ScriptedServer, serveHttp } from "./gateway-scripted-server.ts";

export const protoType = { "content-type": "application/proto" };
export const scriptedRun = { instanceId: "i", runId: "r" };

/** A server whose PreviewTable answers by script; GetDatasource is as it should be, everything else unimplemented. */
export async function servePages(
  script: (request: PreviewTableRequest, response: ServerResponse, call: number) => void,
): Promise<ScriptedServer & { readonly asked: PreviewTableRequest[] }> {
  const asked: PreviewTableRequest[] = [];
  const server = await serveHttp((request, response) => {
    void answer(request, response);
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk as Uint8Array);
    const method = request.url?.split("/").at(-1);
    if (method === "PreviewTable") {
      const message = fromBinary(PreviewTableRequestSchema, Buffer.concat(chunks));
      script(message, response, asked.push(message));
    } else if (method === "GetDatasource") {
      response
        .writeHead(200, protoType)
        .end(toBinary(GetDatasourceResponseSchema, create(GetDatasourceResponseSchema)));
    } else {
      fail(response, Code.Unimplemented);
    }
  }
  return Object.assign(server, { asked });
}

/** Rows of fills at the times given: seq is their place. */
export function pageOf(times: readonly number[], nextPageToken = "", padding = 0): Uint8Array {
  const rows = times.map((time) => ({
    row: {
      case: "fill" as const,
      value: {
        ...scriptedRun,
        seq: BigInt(time),
        tsEvent: BigInt(time),
        symbol: "x".repeat(padding),
      },
    },
  }));
  return toBinary(PreviewTableResponseSchema, create(PreviewTableResponseSchema, { rows, nextPageToken }));
}

/** Answers with a page. */
export function send(response: ServerResponse, page: Uint8Array): void {
  response.writeHead(200, { ...protoType, "content-length": page.byteLength }).end(page);
}

/** Answers with a Connect error; with a history code as its detail where one is given. */
export function fail(
  response: ServerResponse,
  code: Code,
  history?: string,
  headers: Record<string, string> = {},
): void {
  const details = history === undefined ? [] : [{ desc: HistoryErrorDetailSchema, value: { code: history } }];
  const error = new ConnectError("not for branching", code, undefined, details);
  response
    .writeHead(codeToHttpStatus(code), { "content-type": "application/json", ...headers })
    .end(errorToJsonBytes(error, undefined));
}
