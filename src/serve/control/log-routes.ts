import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ControlPlane, LogEntry } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { clientSignal } from "../history/history-routes.ts";
import type { RawQuery } from "../history/row-query.ts";
import { roomIn } from "../http/body-sink.ts";
import type { Drain } from "../http/drain.ts";
import { pathOf } from "../http/request-target.ts";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import { queryOf } from "../route-doc.ts";

/** From the contract of GetLogsRequest.tail. */
export const mostLogLines = 10_000;
const usualLogLines = 100;

export interface LogRoutesOptions {
  readonly control: ControlPlane;
  readonly drain: Drain;
  readonly onRequest: ((entry: RequestLogEntry) => void) | undefined;
  readonly onError: (error: RunvaultError) => void;
}

/** Each follower polls the log. */
const mostFollowers = 64;

const contentType = "text/plain; charset=utf-8";

/** The last lines of an instance's log as text and, with `follow`, new ones until the client or server leaves. */
export function logRoutes(app: FastifyInstance, options: LogRoutesOptions): void {
  const { control } = options;
  const doc = {
    summary: "The last lines of an instance's log; with follow, new lines as well.",
    query: ["tail", "follow"],
    answer: { type: "text/plain" },
  } as const;
  app.get<{ Params: { id: string } }>("/instances/:id/logs", { config: { doc } }, async (request, reply) => {
    const query = queryOf(request);
    const tail = parseTail(query.tail);
    const { id } = request.params;
    const isFollowed = parseFollow(query.follow);
    // a HEAD request follows nothing
    if (!isFollowed || request.method === "HEAD") {
      return reply.type(contentType).send(textOf(await control.log(id, tail)));
    }
    if (options.drain.size >= mostFollowers) {
      throw new RunvaultError("rate_limited", `${mostFollowers} clients are following logs already`, {
        retryAfterMs: 1000,
      });
    }
    const ended = AbortSignal.any([clientSignal(reply), options.drain.signal]);
    const lines = await control.followLog(id, tail, ended);
    reply.hijack();
    options.drain.add(follow(lines, request, reply, options));
    return reply;
  });
}

async function follow(
  lines: AsyncIterable<LogEntry>,
  request: FastifyRequest,
  reply: FastifyReply,
  { onRequest, onError }: LogRoutesOptions,
): Promise<void> {
  const response = reply.raw;
  let bytes = 0;
  let ending: RequestLogEntry["ending"] = "whole";
  try {
    response.writeHead(200, { "content-type": contentType });
    response.flushHeaders();
    for await (const line of lines) {
      const text = textOf([line]);
      bytes += Buffer.byteLength(text);
      if (!response.write(text) && !(await roomIn(response))) break;
    }
    if (response.destroyed) ending = "left";
  } catch (error) {
    // a failing log is cut: a clean end would look complete
    ending = "cut";
    onError(RunvaultError.from(error));
  }
  try {
    const { method, query } = request;
    onRequest?.({
      method,
      path: pathOf(request),
      query: query as RawQuery,
      status: 200,
      ending,
      rows: 0,
      bytes,
    });
    if (ending === "whole") response.end();
    else response.destroy();
  } catch (error) {
    response.destroy();
    onError(RunvaultError.from(error));
  }
}

/** Throws `invalid_argument`, `limit_exceeded`. */
function parseTail(text: string | undefined): number {
  if (text === undefined) return usualLogLines;
  if (!/^\d+$/.test(text)) {
    throw new RunvaultError(
      "invalid_argument",
      `tail must be a number of lines, not ${JSON.stringify(text)}`,
    );
  }
  return tailOf(Number(text));
}

/** The number of lines requested; 0 means the default. Throws `limit_exceeded`. */
export function tailOf(tail: number): number {
  if (tail > mostLogLines) {
    throw new RunvaultError("limit_exceeded", `tail must be at most ${mostLogLines}, not ${tail}`, {
      hint: "Follow the log to see more of it.",
    });
  }
  return tail === 0 ? usualLogLines : tail;
}

function parseFollow(text: string | undefined): boolean {
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw new RunvaultError("invalid_argument", `follow must be true or false, not ${JSON.stringify(text)}`);
}

function textOf(lines: readonly LogEntry[]): string {
  return lines.map(({ text }) => `${text}\n`).join("");
}
