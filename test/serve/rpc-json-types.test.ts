import { create, fromJson, type JsonValue, toJsonString } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  PreviewTableRequestSchema,
  PreviewTableResponseSchema,
} from "../../src/gen/example/history/v1/history_service_pb.ts";
import { serve } from "../../src/serve/server.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

const request = toJsonString(
  PreviewTableRequestSchema,
  create(PreviewTableRequestSchema, {
    table: "fills",
    selection: { instanceId: "alpha", runId: "r1" },
    pageSize: 5,
  }),
);

/** The message in an answer's first frame. */
function unframed(body: Buffer): Buffer {
  return body.subarray(5, 5 + body.readUInt32BE(1));
}

function framed(message: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(message), 1);
  return Buffer.concat([head, Buffer.from(message)]);
}

test.each([
  "application/json",
  "application/JSON",
  "Application/Json; charset=UTF-8",
  "application/json;charset=utf8",
  "application/grpc-web+json",
  "application/GRPC-Web+JSON",
  "application/grpc-web+Json; charset=utf-8",
])("a page asked for as %s holds its rows", async (type) => {
  await using stack = new AsyncDisposableStack();
  const server = await serve({ source: new ArraySource({ fills: fills(12) }), host: "127.0.0.1", port: 0 });
  stack.defer(() => server.close());
  const isFramed = /grpc/i.test(type);
  const response = await fetch(
    `${new URL(server.url).origin}/example.history.v1.HistoryService/PreviewTable`,
    { method: "POST", headers: { "content-type": type }, body: isFramed ? framed(request) : request },
  );
  expect(response.status).toBe(200);
  const body = Buffer.from(await response.arrayBuffer());
  const json = JSON.parse((isFramed ? unframed(body) : body).toString("utf8")) as JsonValue;
  const page = fromJson(PreviewTableResponseSchema, json);
  expect(page.rows.map(({ row }) => row.case)).toEqual(new Array(5).fill("fill"));
  expect(page.nextPageToken).not.toBe("");
});
