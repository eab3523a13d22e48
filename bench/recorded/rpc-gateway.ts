// The same gateway over unary Connect: pages of rows that were encoded in advance, straight from memory.
//   node rpc-gateway.ts contract|own FILE TIMES DESCRIPTORS
//   contract: the service of proto/example; own: that of recorded.proto, whose times are milliseconds
//   FILE: rows, one a line, as protobuf JSON
//   DESCRIPTORS: a descriptor set of the service

import { once } from "node:events";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import {
  createFileRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { RecordedTimes, recordedRun, type Window } from "./recorded-times.ts";

const [form, file, timesFile, descriptors] = process.argv.slice(2) as [string, string, string, string];
const times = await RecordedTimes.read(timesFile);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, await readFile(descriptors)));
const { instance_id: instance, run_id: run } = recordedRun;

interface Page {
  readonly window: Window;
  readonly size: number;
  readonly token: string;
}

/** What a method answers: a document, or a page of rows. */
type Answer = { readonly document: JsonObject } | { readonly page: Page };

interface Form {
  readonly service: string;
  readonly rowsMethod: string;
  /** A response with this row alone, and one with this token alone. */
  row(row: JsonObject): JsonObject;
  token(token: string): JsonObject;
  answer(method: string, asked: Record<string, unknown>): Answer | undefined;
}

type Bound = string | undefined;
type Selection = { readonly from?: Bound; readonly to?: Bound };

const contract: Form = {
  service: "example.history.v1.HistoryService",
  rowsMethod: "PreviewTable",
  row: (row) => ({ rows: [{ fill: row }] }),
  token: (token) => ({ next_page_token: token }),
  answer(method, asked) {
    switch (method) {
      case "GetDatasource":
        return { document: { name: "recorded", kind: "recorded", available: true, tables: ["fills"] } };
      case "ListInstances":
        return {
          document: { instances: [{ instance_id: instance, run_ids: [run], latest_run_id: run }] },
        };
      case "ListRuns": {
        const ends = { ts_started: `${times.ends[0]}`, ts_ended: `${times.ends[1] + 1n}` };
        return {
          document: {
            runs: [{ ...recordedRun, status: "FINISHED", ...ends, final: true, storage_version: "1" }],
          },
        };
      }
      case "GetStorageFacts": {
        const { from: after, to: before } = asked as Selection;
        const { start, end, first, last } = times.within(after, before, 1n);
        const ends = { min_ts_event: `${first}`, max_ts_event: `${last}` };
        const rows = String(end - start);
        return {
          document: { tables: [{ table: "fills", rows, ...ends, schema_fingerprint: "1", final: true }] },
        };
      }
      case "PreviewTable": {
        const selection = asked.selection as Selection;
        const window = times.within(selection.from, selection.to, 1n);
        return { page: { window, size: Number(asked.page_size), token: String(asked.page_token) } };
      }
      default:
        return undefined;
    }
  },
};

const milliseconds = 1_000_000n;

const own: Form = {
  service: "recorded.Tape",
  rowsMethod: "Trades",
  row: (row) => ({ trades: [row] }),
  token: (token) => ({ next: token }),
  answer(method, asked) {
    const { after, before } = asked as { readonly after?: Bound; readonly before?: Bound };
    const window = times.within(after, before, milliseconds);
    switch (method) {
      case "Desks":
        return { document: { desks: [{ name: instance, executions: [run] }] } };
      case "Executions": {
        const ends = {
          opened: `${times.ends[0] / milliseconds}`,
          closed: `${times.ends[1] / milliseconds + 1n}`,
        };
        return {
          document: { executions: [{ id: run, ...ends, state: "FINISHED", sealed: true, version: "1" }] },
        };
      }
      case "Count": {
        const ends = { first: `${window.first / milliseconds}`, last: `${window.last / milliseconds}` };
        const rows = String(window.end - window.start);
        return { document: { tallies: [{ table: "fills", rows, ...ends, sealed: true }] } };
      }
      case "Trades":
        return { page: { window, size: Number(asked.per_page), token: String(asked.cursor) } };
      default:
        return undefined;
    }
  },
};

const { service, rowsMethod, row: rowOf, token: tokenOf, answer } = form === "own" ? own : contract;
const methods = registry.getService(service)!.methods;
const { output: pageMessage } = methods.find(({ name }) => name === rowsMethod)!;
const encoded = (message: DescMessage, value: JsonObject) => toBinary(message, fromJson(message, value));

const parts: Uint8Array[] = [];
const starts = new Float64Array(times.rows + 1);
for await (const line of createInterface({ input: createReadStream(file) })) {
  const part = encoded(pageMessage, rowOf(JSON.parse(line) as JsonObject));
  starts[parts.length + 1] = starts[parts.length]! + part.byteLength;
  parts.push(part);
}
const rows = Buffer.concat(parts);
parts.length = 0;

/** As many rows as are asked for, and as fit the four megabytes of a page. */
function pageBytes({ window, size, token }: Page): Uint8Array {
  const start = token === "" ? window.start : Number(token);
  let end = Math.min(window.end, start + (size || 1000));
  while (starts[end]! - starts[start]! > 4_000_000) end = start + ((end - start) >> 1);
  const more = end < window.end ? [encoded(pageMessage, tokenOf(String(end)))] : [];
  return Buffer.concat([rows.subarray(starts[start], starts[end]), ...more]);
}

const server = createServer(async (request, response) => {
  const [, asked = "", method = ""] = request.url!.split("/");
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const descriptor = asked === service ? methods.find(({ name }) => name === method) : undefined;
  const body =
    descriptor === undefined
      ? undefined
      : answer(
          method,
          toJson(descriptor.input, fromBinary(descriptor.input, Buffer.concat(pieces)), {
            alwaysEmitImplicit: true,
            useProtoFieldName: true,
          }) as Record<string, unknown>,
        );
  if (body === undefined) {
    response.writeHead(501, { "content-type": "application/json" });
    response.end('{"code":"unimplemented","message":"no such method"}');
    return;
  }
  const bytes = "page" in body ? pageBytes(body.page) : encoded(descriptor!.output, body.document);
  response.writeHead(200, {
    "content-type": "application/proto",
    "content-length": String(bytes.byteLength),
  });
  response.end(bytes);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
