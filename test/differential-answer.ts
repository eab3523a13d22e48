import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import {
  type DescMessage,
  type DescMethod,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { GatewayErrorSchema } from "../src/gen/example/gateway/v1/error_pb.ts";
import { HistoryErrorDetailSchema } from "../src/gen/example/history/v1/history_service_pb.ts";
import type { DifferentialRequest } from "./differential-request.ts";
import type { Side } from "./differential-sides.ts";

/** An answer taken to pieces that can be compared one by one. */
export interface Answer {
  readonly status: number;
  /** Status and code, such as `404 run_not_found`; the status alone where nothing failed. */
  readonly outcome: string;
  /** By name: headers as `headers.NAME`, JSON by its path, such as `daemon.version`, any other body as `body`. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Of HTTP itself, of the connection and of the clock; the length follows from the body. */
const transportHeaders = new Set(["date", "connection", "keep-alive", "transfer-encoding", "content-length"]);

export async function answerOf(side: Side, asked: DifferentialRequest, method?: DescMethod): Promise<Answer> {
  const { status, headers, body } = await exchange(side, asked);
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (!transportHeaders.has(name)) fields.set(`headers.${name}`, String(value));
  }
  const type = String(headers["content-type"] ?? "").split(";", 1)[0]!;
  const codes: string[] = [];
  if (type === "application/json") {
    const json: unknown = body.length === 0 ? undefined : JSON.parse(body.toString("utf8"));
    if (method !== undefined && status === 200) {
      // JSON over Connect leaves zero values out
      addJson(fields, "", jsonOf(method.output, fromJson(method.output, json as JsonValue)));
    } else if (method !== undefined && "code" in Object(json)) addConnectError(fields, codes, json);
    else {
      addJson(fields, "", json);
      codes.push(fields.get("error.code") ?? "");
    }
  } else if (type === "application/proto" && method !== undefined) {
    addJson(fields, "", jsonOf(method.output, fromBinary(method.output, body)));
  } else if (type === "text/plain" && body.includes("# TYPE ")) {
    addMetrics(fields, body.toString("utf8"));
  } else {
    fields.set("body", body.toString("utf8"));
  }
  const outcome = [status, ...codes.filter((code) => code !== "").map((code) => JSON.parse(code) as string)];
  return { status, outcome: outcome.join(" "), fields };
}

interface Exchanged {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** Without its compression. */
  readonly body: Buffer;
}

async function exchange({ servers, agent }: Side, asked: DifferentialRequest): Promise<Exchanged> {
  const { method, path, headers, body, door, reads } = asked;
  const { port } = servers[door];
  // a connection that was to be upgraded is of no use to another request
  const connection = "upgrade" in headers ? { agent: false } : { agent };
  const length = body === undefined ? {} : { "content-length": String(body.length) };
  const sent = httpRequest({
    host: "127.0.0.1",
    port,
    method,
    path,
    ...connection,
    headers: { ...length, ...headers },
  });
  sent.end(body);
  const upgraded = once(sent, "upgrade").then(([response, socket]) => {
    (socket as IncomingMessage["socket"]).destroy();
    return response as IncomingMessage;
  });
  const answered = once(sent, "response").then(([response]) => response as IncomingMessage);
  // the one that does not come fails when the connection ends, unheard
  upgraded.catch(() => {});
  const response = await Promise.race([answered, upgraded]);
  const status = response.statusCode!;
  if (reads === "head" && status < 300) {
    sent.destroy();
    return { status, headers: response.headers, body: Buffer.alloc(0) };
  }
  const parts: Buffer[] = [];
  if (status !== 101) for await (const part of response) parts.push(part as Buffer);
  const whole = Buffer.concat(parts);
  const coding = whole.length === 0 ? undefined : response.headers["content-encoding"];
  const plain = coding === "zstd" ? zstdDecompressSync(whole) : coding === "gzip" ? gunzipSync(whole) : whole;
  return { status, headers: response.headers, body: plain };
}

function jsonOf(schema: DescMessage, message: Message): unknown {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

/** Each value under the path that leads to it; an empty list or object is a value too. */
function addJson(fields: Map<string, string>, path: string, value: unknown): void {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (entries.length === 0) fields.set(path === "" ? "body" : path, JSON.stringify(value) ?? "");
  for (const [name, inner] of entries) addJson(fields, path === "" ? name : `${path}.${name}`, inner);
}

interface ConnectErrorJson {
  readonly code: string;
  readonly message?: string;
  readonly details?: readonly { readonly type: string; readonly value: string }[];
}

/** A Connect error with what its detail says, under the names that the envelope on REST has. */
function addConnectError(fields: Map<string, string>, codes: string[], json: unknown): void {
  const { code, message, details = [] } = json as ConnectErrorJson;
  codes.push(JSON.stringify(code));
  for (const { type, value } of details) {
    const schema = [GatewayErrorSchema, HistoryErrorDetailSchema].find(({ typeName }) => typeName === type);
    if (schema === undefined) throw new Error(`no such detail: ${type}`);
    const detail = jsonOf(schema, fromBinary(schema, Buffer.from(value, "base64"))) as {
      readonly code: string;
    };
    codes.push(JSON.stringify(detail.code));
    addJson(fields, "error", detail);
  }
  fields.set("error.message", JSON.stringify(message));
}

/** Prometheus text: what each metric is, under its name, and its samples with their labels. */
function addMetrics(fields: Map<string, string>, text: string): void {
  for (const line of text.split("\n").filter((line) => line !== "")) {
    const [, kind, name, rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind !== undefined) fields.set(`${kind}.${name}`, rest!);
    else {
      const [, sample, value] = /^(.*) (\S+)$/.exec(line) ?? [];
      if (sample === undefined || value === undefined) throw new Error(`no line of Prometheus text: ${line}`);
      fields.set(`samples.${sample}`, value);
    }
  }
}
