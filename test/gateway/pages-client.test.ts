// @module-tag slow
import { gzipSync, zstdCompressSync } from "node:zlib";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { Code } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { describe, expect, test } from "vitest";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { type ErrorCode, RunvaultError } from "../../src/model/error.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import {
  fail,
  pageOf,
  protoType,
  scriptedRun,
  send,
  servePages,
} from "../fixtures/source/rpc-scripted-pages.ts";

type Script = Parameters<typeof servePages>[0];

/** What a client reads of a server with the script: the times that came, how it ended, and what was asked. */
async function readFrom(script: Script, options: Partial<GatewayOptions> = {}, limit?: number) {
  await using server = await servePages(script);
  await using gateway = openRpcGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    ...options,
  });
  const times: number[] = [];
  let error: RunvaultError | undefined;
  try {
    for await (const chunk of gateway.rows({ ...scriptedRun, table: "fills", limit })) {
      for (const line of Buffer.from(chunk).toString("utf8").split("\n").slice(0, -1)) {
        times.push(Number((JSON.parse(line) as { ts_event: string }).ts_event));
      }
    }
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError)) throw thrown;
    error = thrown;
  }
  const asked = server.asked.map(({ pageSize, pageToken }) => ({ pageSize, pageToken }));
  return { times, code: error?.code, error, asked, stats: { ...gateway.stats } };
}

test("pages are read to the one without a token, each asked for by the token before", async () => {
  const { times, code, asked } = await readFrom((_request, response, call) =>
    send(response, pageOf([call * 2, call * 2 + 1], call < 3 ? `t${call}` : "")),
  );
  expect(times).toEqual([2, 3, 4, 5, 6, 7]);
  expect(code).toBeUndefined();
  expect(asked.map(({ pageToken }) => pageToken)).toEqual(["", "t1", "t2"]);
});

test("a limit is kept, and a page that brings more than was asked for is refused, once and for all", async () => {
  const sending =
    (rows: number): Script =>
    (_request, response, call) =>
      send(response, pageOf(range(call * 10, call * 10 + rows), `t${call}`));
  const two = await readFrom(sending(2), {}, 2);
  expect(two.times).toEqual([10, 11]);
  expect(two.asked).toEqual([{ pageSize: 2, pageToken: "" }]);
  const three = await readFrom(sending(3), { retry: quickRetry({ retries: 3 }) }, 2);
  expect(three).toMatchObject({ code: "refused", times: [], asked: [{ pageSize: 2, pageToken: "" }] });
});

test("pages of nearly nothing do not talk the client into asking for more rows than it can hold", async () => {
  const { asked, code } = await readFrom(({ pageSize }, response, call) => {
    const rows = new BinaryWriter().tag(1, 2).bytes(Uint8Array.of(0x0a, 0)).finish();
    const body = [...new Array(pageSize - 1).fill(rows), pageOf([call], call < 5 ? `t${call}` : "")];
    send(response, Buffer.concat(body.reverse()));
  });
  expect(code).toBeUndefined();
  expect(asked.map(({ pageSize }) => pageSize)).toEqual([1000, 4000, 16_000, 64_000, 100_000]);
});

test("the next page is on its way while one is read", async () => {
  let second: (() => void) | undefined;
  const arrived = new Promise<void>((resolve) => {
    second = resolve;
  });
  await using server = await servePages((_request, response, call) => {
    if (call === 2) second?.();
    send(response, pageOf([call], call === 1 ? "t" : ""));
  });
  await using gateway = openRpcGateway({ baseUrl: server.url });
  const rows = gateway.rows({ ...scriptedRun, table: "fills" })[Symbol.asyncIterator]();
  expect((await rows.next()).done).toBe(false);
  // nobody has asked for more yet
  await arrived;
  expect((await rows.next()).done).toBe(false);
  expect((await rows.next()).done).toBe(true);
});

describe("pages that stop making sense are a cut, behind the last good row", () => {
  test.each<[string, Script, number[]]>([
    [
      "a page that came before",
      (_request, response, call) => send(response, pageOf([Math.min(call, 2)], `t${call}`)),
      [1, 2],
    ],
    [
      "a page that goes back",
      (_request, response, call) =>
        send(response, pageOf(call === 3 ? [3, 4] : [call * 3, call * 3 + 1], `t${call}`)),
      [3, 4, 6, 7],
    ],
    [
      "a token that leads to itself",
      (_request, response, call) => send(response, pageOf([call], "same")),
      [1, 2],
    ],
    [
      "empty pages without an end",
      (_request, response, call) => send(response, pageOf(call === 1 ? [1] : [], `t${call}`)),
      [1],
    ],
  ])("%s", async (_name, script, kept) => {
    const { times, code } = await readFrom(script, { retry: quickRetry({ retries: 3 }) });
    expect(code).toBe("stream_cut");
    expect(times).toEqual(kept);
  });

  test.each([
    [Code.InvalidArgument, "invalid_argument"],
    [Code.InvalidArgument, undefined],
    [Code.FailedPrecondition, undefined],
    [Code.OutOfRange, undefined],
    [Code.Aborted, undefined],
    [Code.NotFound, undefined],
  ])("a token refused with code %i and detail %s", async (code, history) => {
    const read = await readFrom(
      ({ pageToken }, response) =>
        pageToken === "" ? send(response, pageOf([1, 2], "t")) : fail(response, code, history),
      { retry: quickRetry({ retries: 3 }) },
    );
    expect(read).toMatchObject({ code: "stream_cut", times: [1, 2] });
    // a token that is no longer taken is not tried again, but for a page of as many rows as came before
    const second = codeToHttpStatus(code) === 400 ? [4000, 1000] : [4000];
    expect(read.asked.map(({ pageSize }) => pageSize)).toEqual([1000, ...second]);
  });

  test("a few empty pages are none of these", async () => {
    const { times, code } = await readFrom((_request, response, call) =>
      send(response, pageOf(call % 5 === 1 ? [call] : [], call < 20 ? `t${call}` : "")),
    );
    expect(code).toBeUndefined();
    expect(times).toEqual([1, 6, 11, 16]);
  });

  test("nor is a run that is gone, which says so", async () => {
    const { code } = await readFrom(({ pageToken }, response) =>
      pageToken === "" ? send(response, pageOf([1], "t")) : fail(response, Code.NotFound, "run_not_found"),
    );
    expect(code).toBe("run_not_found");
  });
});

describe("a page that did not come whole is asked for again, by its token", () => {
  const whole = pageOf([3, 4]);
  const broken: [string, Script][] = [
    ["cut in its message", (_request, response) => send(response, whole.subarray(0, whole.length - 3))],
    [
      "cut on the wire",
      (_request, response) => {
        response.writeHead(200, { ...protoType, "content-length": whole.length });
        response.write(whole.subarray(0, 9), () => response.destroy());
      },
    ],
    ["damaged in a row", (_request, response) => send(response, flipped(whole))],
    [
      "with gzip that breaks off",
      (_request, response) =>
        response
          .writeHead(200, { ...protoType, "content-encoding": "gzip" })
          .end(gzipSync(whole).subarray(0, 20)),
    ],
    [
      "with gzip that is none",
      (_request, response) =>
        response.writeHead(200, { ...protoType, "content-encoding": "gzip" }).end(whole),
    ],
    ["refused for now", (_request, response) => fail(response, Code.Unavailable)],
    ["failed within", (_request, response) => fail(response, Code.Internal, "history_query_failed")],
    ["late", (_request, response) => fail(response, Code.DeadlineExceeded)],
    [
      "refused by a proxy",
      (_request, response) => response.writeHead(502, { "content-type": "text/html" }).end("<html>"),
    ],
  ];
  test.each(broken)("%s", async (_name, script) => {
    const { times, code, asked, stats } = await readFrom(
      (request, response, call) => {
        if (call === 1) send(response, pageOf([1, 2], "t"));
        else if (call === 2) script(request, response, call);
        else send(response, whole);
      },
      { retry: quickRetry({ retries: 2 }) },
    );
    expect(code).toBeUndefined();
    expect(times).toEqual([1, 2, 3, 4]);
    expect(asked.map(({ pageToken }) => pageToken)).toEqual(["", "t", "t"]);
    expect(stats.retries).toBe(1);
  });

  test("and given up by name when it never does", async () => {
    const { times, code, asked } = await readFrom(
      (_request, response, call) => send(response, call === 1 ? pageOf([1], "t") : flipped(whole)),
      { retry: quickRetry({ retries: 2 }) },
    );
    expect(code).toBe("malformed_row");
    expect(times).toEqual([1]);
    // as often as any other request
    expect(asked).toHaveLength(4);
  });
});

describe("a page that is too large", () => {
  const mib = 1024 * 1024;
  /** Rows of half a MiB, as many as asked for, with nothing kept to but the request. */
  const generous: Script = ({ pageSize, pageToken }, response) => {
    const from = Number(pageToken || "1");
    const until = Math.min(from + pageSize, 41);
    send(response, pageOf(range(from, until), until < 41 ? String(until) : "", mib / 2));
  };

  test("is asked for by half until it fits, and the next ones are sized by the rows that came", async () => {
    const { times, code, asked } = await readFrom(generous);
    expect(code).toBeUndefined();
    expect(times).toEqual(range(1, 41));
    const first = asked.filter(({ pageToken }) => pageToken === "").map(({ pageSize }) => pageSize);
    expect(first.slice(0, 3)).toEqual([1000, 500, 250]);
    // 4 MiB less some room hold six such rows
    expect(asked.slice(first.length).every(({ pageSize }) => pageSize === 6)).toBe(true);
  });

  test.each([
    [Code.OutOfRange, "limit_exceeded"],
    [Code.ResourceExhausted, "limit_exceeded"],
  ])("may be refused with code %i and %s instead, in mid-stream too", async (code, history) => {
    const { times, code: end } = await readFrom(({ pageSize, pageToken }, response) => {
      const from = Number(pageToken || "1");
      if (pageSize > (from === 1 ? 300 : 100)) return fail(response, code, history);
      const until = Math.min(from + pageSize, 1000);
      send(response, pageOf(range(from, until), until < 1000 ? String(until) : ""));
    });
    expect(end).toBeUndefined();
    expect(times).toEqual(range(1, 1000));
  });

  test("of one row is limit_exceeded", async () => {
    const { code, asked } = await readFrom((_request, response) =>
      fail(response, Code.OutOfRange, "limit_exceeded"),
    );
    expect(code).toBe("limit_exceeded");
    expect(asked.at(-1)?.pageSize).toBe(1);
  });

  test("may be refused as exhausted, which a rate limit is called too: fewer rows, and a wait", async () => {
    const { times, asked } = await readFrom(
      ({ pageSize }, response) =>
        pageSize > 300 ? fail(response, Code.ResourceExhausted) : send(response, pageOf([1])),
      { retry: quickRetry({ retries: 3 }) },
    );
    expect(times).toEqual([1]);
    expect(asked.map(({ pageSize }) => pageSize)).toEqual([1000, 500, 250]);
  });
});

test("a rate limit waits as long as Retry-After says", async () => {
  const delays: number[] = [];
  const { times, asked } = await readFrom(
    (_request, response, call) =>
      call === 1
        ? fail(response, Code.ResourceExhausted, "rate_limited", { "retry-after": "1" })
        : send(response, pageOf([1])),
    { retry: quickRetry({ retries: 1, onRetry: ({ delayMs }) => void delays.push(delayMs) }) },
  );
  expect(times).toEqual([1]);
  expect(delays).toEqual([1000]);
  // and asks for as many rows as before
  expect(asked.map(({ pageSize }) => pageSize)).toEqual([1000, 1000]);
});

test.each([
  ["gzip", gzipSync],
  ["zstd", zstdCompressSync],
] as const)("pages in %s are taken off it", async (coding, compress) => {
  const { times, stats } = await readFrom(
    (_request, response) => {
      const body = compress(pageOf(range(1, 500)));
      response.writeHead(200, { ...protoType, "content-encoding": coding }).end(body);
    },
    { compressed: true },
  );
  expect(times).toEqual(range(1, 500));
  expect(stats.bytes).toBeLessThan(pageOf(range(1, 500)).length);
});

const first: [string, Script, ErrorCode][] = [
  ["run_not_found", (_request, response) => fail(response, Code.NotFound, "run_not_found"), "run_not_found"],
  [
    "history_unavailable",
    (_request, response) => fail(response, Code.FailedPrecondition, "history_unavailable"),
    "history_unavailable",
  ],
  [
    "an identity conflict",
    (_request, response) => fail(response, Code.Aborted, "history_identity_conflict"),
    "history_identity_conflict",
  ],
  [
    "a history code ahead of the protocol's",
    (_request, response) => fail(response, Code.Internal, "permission_denied"),
    "permission_denied",
  ],
  [
    "a history code that nobody knows",
    (_request, response) => fail(response, Code.PermissionDenied, "of_tomorrow"),
    "permission_denied",
  ],
  ["unauthenticated", (_request, response) => fail(response, Code.Unauthenticated), "unauthenticated"],
  ["an invalid argument", (_request, response) => fail(response, Code.InvalidArgument), "refused"],
  [
    "a method that is not there",
    (_request, response) => fail(response, Code.Unimplemented),
    "route_not_found",
  ],
  ["no found thing", (_request, response) => fail(response, Code.NotFound), "resource_not_found"],
  ["data loss", (_request, response) => fail(response, Code.DataLoss), "server_error"],
  [
    "a 404 of something else",
    (_request, response) => response.writeHead(404).end("<html>"),
    "route_not_found",
  ],
  ["a 405", (_request, response) => response.writeHead(405).end(), "route_not_found"],
  [
    "an error of REST",
    (_request, response) =>
      response
        .writeHead(401, { "content-type": "application/json" })
        .end('{"ok":false,"error":{"code":"x"}}'),
    "unauthenticated",
  ],
  [
    "a redirect",
    (_request, response) => response.writeHead(307, { location: "/elsewhere" }).end(),
    "not_a_gateway",
  ],
  [
    "a refusal in other words",
    (_request, response) => response.writeHead(415, { "content-type": "text/plain" }).end("no"),
    "not_a_gateway",
  ],
  [
    "another media type",
    (_request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
    "not_a_gateway",
  ],
  [
    "JSON instead of protobuf",
    (_request, response) => response.writeHead(200, { "content-type": "application/json" }).end("{}"),
    "not_a_gateway",
  ],
  [
    "another coding",
    (_request, response) => response.writeHead(200, { ...protoType, "content-encoding": "br" }).end("x"),
    "not_a_gateway",
  ],
  [
    "a message whose end nothing shows",
    (_request, response) => {
      response.socket?.write(
        "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nConnection: close\r\n\r\n",
      );
      response.socket?.end(pageOf([1]));
    },
    "refused",
  ],
  [
    "an unknown Connect code",
    (_request, response) =>
      response.writeHead(500, { "content-type": "application/json" }).end('{"code":"of_tomorrow"}'),
    "server_error",
  ],
  [
    "details that are none",
    (_request, response) =>
      response
        .writeHead(403, { "content-type": "application/json" })
        .end('{"code":"internal","details":[7]}'),
    "permission_denied",
  ],
];

test.each(first)("%s as the first answer is an error by its code", async (_name, script, code) => {
  const read = await readFrom(script);
  expect(read.code).toBe(code);
  expect(read.times).toEqual([]);
});

test("an answer that never ends is a timeout, and a reader that leaves ends it", async () => {
  const never: Script = (_request, response) => {
    response.writeHead(200, protoType);
    response.write(pageOf([1]));
  };
  const read = await readFrom(never, { documentTimeoutMs: 300 });
  expect(read.code).toBe("timeout");

  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  await using server = await servePages((_request, response, call) => {
    if (call === 1) return send(response, pageOf([1], "t"));
    response.on("close", () => closed.resolve());
    arrived.resolve();
  });
  await using gateway = openRpcGateway({ baseUrl: server.url });
  for await (const _ of gateway.rows({ ...scriptedRun, table: "fills" })) {
    await arrived.promise;
    break;
  }
  await closed.promise;
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** A page with a wrong wire type inside its first row: whole by its frame, and not to be read. */
function flipped(page: Uint8Array): Uint8Array {
  const copy = Buffer.from(page);
  // tag of rows, its length, tag of fill, its length, tag of run_id
  copy[4]! ^= 0x01;
  return copy;
}
