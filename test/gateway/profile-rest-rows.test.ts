// @module-tag slow
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { DocumentScanner } from "../../src/gateway/rest/pages/document-scanner.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { serveHttp, serveRaw } from "../fixtures/source/gateway-scripted-server.ts";
import {
  fillsRoute,
  itemsText,
  profileOf,
  read,
  request,
  row,
  rowsOf,
  serveJson,
} from "../fixtures/source/rest-profile.ts";

const sought = {
  array: ["data", "items"],
  values: [["page", "next"], ["total"]],
};

/** What a scanner makes of a document that comes in pieces of so many bytes. */
function scan(text: string, pieceBytes: number, what = sought) {
  const scanner = new DocumentScanner(what, {});
  const bytes = Buffer.from(text);
  const parts: Uint8Array[] = [];
  try {
    for (let at = 0; at < bytes.length; at += pieceBytes)
      parts.push(scanner.push(bytes.subarray(at, at + pieceBytes)));
    scanner.end();
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError)) throw thrown;
    return thrown.code;
  }
  return {
    lines: Buffer.concat(parts).toString(),
    rows: scanner.rows,
    values: what.values.map((_, i) => scanner.value(i)),
  };
}

const found: readonly (readonly [
  name: string,
  text: string,
  lines: string[],
  values: (string | undefined)[],
])[] = [
  [
    "values ahead of the rows",
    '{"page":{"next":"a\\"b"},"total":3,"data":{"items":[{"a":1}]}}',
    ['{"a":1}'],
    ['"a\\"b"', "3"],
  ],
  [
    "values behind them",
    '{"data":{"items":[{"a":1},{"b":[2,{}]}],"x":[]},"page":{"next":null}}',
    ['{"a":1}', '{"b":[2,{}]}'],
    ["null", undefined],
  ],
  [
    "blanks and line breaks",
    ' {\r\n"data" : { "items" : [ {\n "a" : "x\\\\" ,\r\n "b": 1 } ,\n\n[1]\n, 5 ] } } \n',
    ['{ "a" : "x\\\\" , "b": 1 }', "[1]", "5"],
    [undefined, undefined],
  ],
  [
    "brackets and quotes inside strings",
    '{"data":{"items":[{"a":"}]\\"[{"},"t,]x",null]}}',
    ['{"a":"}]\\"[{"}', '"t,]x"', "null"],
    [undefined, undefined],
  ],
  [
    "names with escapes, and others like them",
    '{"d\\u0061ta":{"item":[1],"items":[{}],"itemss":[2]},"data2":{"items":[3]}}',
    ["{}"],
    [undefined, undefined],
  ],
  [
    "an empty array, and arrays of the same name elsewhere",
    '{"x":[{"data":{"items":[{"no":1}]}}],"data":{"items":[]}}',
    [],
    [undefined, undefined],
  ],
  [
    "several letters of a byte and more",
    '{"data":{"items":[{"a":"é€😀"}]},"page":{"next":"é€😀"}}',
    ['{"a":"é€😀"}'],
    ['"é€😀"', undefined],
  ],
  [
    "a byte order mark",
    '\ufeff{"data":{"items":[{"a":-1.5e+3}]}}',
    ['{"a":-1.5e+3}'],
    [undefined, undefined],
  ],
];

for (const [name, text, lines, values] of found) {
  test(`rows are taken out of a document with ${name}, however it is cut`, () => {
    const whole = { lines: lines.map((line) => `${line}\n`).join(""), rows: lines.length, values };
    for (const pieceBytes of [1, 2, 3, 7, 1000]) {
      // a mark of three bytes has to come in one piece
      if (pieceBytes < 3 && text.startsWith("\ufeff")) continue;
      expect(scan(text, pieceBytes)).toEqual(whole);
    }
  });
}

test("a document that is the array itself is split too", () => {
  const what = { array: [], values: [] };
  expect(scan('[{"a":1},{"a":2}]', 3, what)).toMatchObject({ lines: '{"a":1}\n{"a":2}\n', rows: 2 });
});

const hostile: readonly (readonly [name: string, text: string, code: string])[] = [
  ["the array twice", '{"data":{"items":[{}],"items":[{}]}}', "not_a_gateway"],
  ["the way to the array twice", '{"data":{"items":[{}]},"data":{"x":1}}', "not_a_gateway"],
  ["a value twice", '{"total":1,"total":2,"data":{"items":[]}}', "not_a_gateway"],
  ["no array", '{"data":{"rows":[{}]}}', "not_a_gateway"],
  ["an object in its place", '{"data":{"items":{"a":1}}}', "not_a_gateway"],
  ["null in its place", '{"data":{"items":null}}', "not_a_gateway"],
  ["an array ahead of it", '{"data":[{"items":[{}]}]}', "not_a_gateway"],
  ["text behind it", '{"data":{"items":[{}]}} {}', "not_a_gateway"],
  ["no comma between rows", '{"data":{"items":[{"a":1}{"a":2}]}}', "not_a_gateway"],
  ["a comma too many", '{"data":{"items":[{"a":1},]}}', "not_a_gateway"],
  ["a comma first", '{"data":{"items":[,{"a":1}]}}', "not_a_gateway"],
  ["a bracket that closes nothing", '{"data":{"items":[{}]]}', "not_a_gateway"],
  ["a word that is none", '{"a":nil,"data":{"items":[]}}', "not_a_gateway"],
  ["a line break in a string", '{"data":{"items":[{"a":"x\ny"}]}}', "not_a_gateway"],
  ["deep nesting around it", `${'{"x":'.repeat(65)}1${"}".repeat(65)}`, "not_a_gateway"],
  ["deep nesting inside a row", `{"data":{"items":[${"[".repeat(65)}${"]".repeat(65)}]}}`, "not_a_gateway"],
  ["a value without an end", `{"total":"${"9".repeat(70_000)}"}`, "not_a_gateway"],
  ["a row over 16 MiB", `{"data":{"items":["${"x".repeat(17 * 1024 * 1024)}"]}}`, "line_too_long"],
  ["an end in a row", '{"data":{"items":[{"a":1},{"a"', "stream_cut"],
  ["an end between rows", '{"data":{"items":[{"a":1}', "stream_cut"],
  ["an end behind the rows", '{"data":{"items":[{"a":1}]}', "stream_cut"],
  ["nothing", "", "stream_cut"],
];

for (const [name, text, code] of hostile) {
  test(`a document with ${name} is ${code}`, () => {
    for (const pieceBytes of text.length > 100_000 ? [65_536] : [1, 5, 1000])
      expect(scan(text, pieceBytes)).toBe(code);
  });
}

test("every cut of a document's bytes is an error, and the whole is not", async () => {
  const text = itemsText(rowsOf(2), { page: { next: null } });
  let cutAt = 0;
  await using server = await serveRaw((socket) => {
    const body = text.slice(0, cutAt);
    socket.end(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  });
  const profile = profileOf({ tables: { fills: fillsRoute() } });
  for (cutAt = 0; cutAt < text.length; cutAt += 7)
    expect((await read(server, profile)).error?.code).toBe("stream_cut");
  cutAt = text.length;
  expect(await read(server, profile)).toMatchObject({ lines: rowsOf(2), error: undefined });
});

test("a request says what the profile says, as a query or as a body", async () => {
  const asked: string[] = [];
  await using server = await serveJson((path, query, { method }, body) => {
    asked.push(`${method} ${path} ${query} ${body}`);
    return { body: itemsText([]) };
  });
  const from = 1_640_995_200_000_000_000n;
  const bounds = { from, to: from + 1_000_000_000n, limit: 7 };
  const parameters = { filters: { symbol: "pair" }, fixed: { format: "json" } } as const;
  const route = fillsRoute({
    ...request("/desks/{instance}/runs/{run}/trades", parameters),
    largestLimit: 5,
  });
  const posted = { ...route, method: "POST", times: { ...route.times, unit: "ms" } } as const;
  const ids = { instanceId: "a/b", runId: "r?1" };
  for (const fills of [route, posted]) {
    const { error } = await read(server, profileOf({ base: "/v2", tables: { fills } }), {
      ...bounds,
      ...ids,
      filters: { symbol: "A&B" },
    });
    expect(error).toBeUndefined();
  }
  expect(asked).toEqual([
    "GET /v2/desks/a%2Fb/runs/r%3F1/trades format=json&after=1640995200000000000&before=1640995201000000000&max=5&pair=A%26B ",
    'POST /v2/desks/a%2Fb/runs/r%3F1/trades  {"format":"json","after":1640995200000,"before":1640995201000,"max":5,"pair":"A&B"}',
  ]);
});

test("an id that would be a step in a path is refused, and so is a filter that the profile does not name", async () => {
  await using server = await serveJson(() => ({ body: itemsText([]) }));
  const profile = profileOf({ tables: { fills: fillsRoute(request("/runs/{run}/trades")) } });
  expect((await read(server, profile, { runId: ".." })).error?.code).toBe("invalid_argument");
  expect((await read(server, profile, { filters: { symbol: "X" } })).error?.code).toBe("invalid_argument");
  expect(server.requests).toEqual([]);
});

const ms = 1_000_000n;
/** Rows at and beside whole milliseconds, from before 1970 on. */
const times = [
  -2n * ms,
  -2n * ms + 1n,
  -ms - 1n,
  -ms,
  -1n,
  0n,
  1n,
  ms - 1n,
  ms,
  ms + 1n,
  2n * ms,
  3n * ms - 1n,
];
const timed = times.map((ts, i) => row(ts, i));

/** A bound of whole milliseconds: a count, or RFC 3339 with three decimals. */
function msOf(text: string): bigint {
  return /^\d{4}-\S+\.\d{3}Z$/.test(text) ? BigInt(Date.parse(text)) : BigInt(text);
}

const ends = ["inclusive", "exclusive"] as const;
for (const unit of [{ unit: "ms" }, { unit: "rfc3339", step: "ms" }] as const) {
  for (const [fromKind, toKind] of ends.flatMap((from) => ends.map((to) => [from, to] as const))) {
    test(`bounds in ${unit.unit} to the millisecond, ${fromKind} and ${toKind}, bring what was asked for to the nanosecond`, async () => {
      await using server = await serveJson((_, query) => {
        const after = query.get("after");
        const before = query.get("before");
        const kept = timed.filter((_, i) => {
          const ts = times[i]!;
          if (after !== null && (fromKind === "inclusive" ? ts < msOf(after) * ms : ts <= msOf(after) * ms))
            return false;
          return (
            before === null || (toKind === "inclusive" ? ts <= msOf(before) * ms : ts < msOf(before) * ms)
          );
        });
        return { body: itemsText(kept.slice(0, Number(query.get("max") ?? 100))) };
      });
      const profile = profileOf({
        tables: { fills: fillsRoute({ times: { ...unit, from: fromKind, to: toKind } }) },
      });
      for (const from of [undefined, ...times]) {
        for (const to of [undefined, -ms, 0n, 1n, ms, 2n * ms + 5n]) {
          if (from !== undefined && to !== undefined && from > to) continue;
          const wanted = timed.filter(
            (_, i) => times[i]! >= (from ?? times[i]!) && times[i]! < (to ?? times[i]! + 1n),
          );
          expect(await read(server, profile, { from, to })).toMatchObject({
            lines: wanted,
            error: undefined,
          });
          // a limit counts what is asked for, not what was clipped
          expect((await read(server, profile, { from, to, limit: 1 })).lines).toEqual(wanted.slice(0, 1));
        }
      }
    });
  }
}

test("a row beyond what bounds were widened by is handed on, for its reader to refuse", async () => {
  await using server = await serveJson(() => ({ body: itemsText(timed) }));
  const profile = profileOf({
    tables: { fills: fillsRoute({ times: { unit: "ms", from: "inclusive", to: "exclusive" } }) },
  });
  const { lines } = await read(server, profile, { from: 1n, to: 2n * ms });
  const isWidening = (ts: bigint) => ts > 1n - ms && ts < 1n;
  expect(lines).toEqual(timed.filter((_, i) => !isWidening(times[i]!)));
});

test("a table without bounds comes whole each time, and only what was asked for is handed out", async () => {
  await using server = await serveJson((_, query) => ({ body: query.has("after") ? "" : itemsText(timed) }));
  const route = fillsRoute(request("/trades", { from: undefined, to: undefined, limit: undefined }));
  const profile = profileOf({ tables: { fills: route } });
  expect((await read(server, profile, { from: 0n, to: ms })).lines).toEqual(timed.slice(5, 8));
  expect((await read(server, profile)).lines).toEqual(timed);
});

/** Rows of few times, newest first, as many an answer as the cap says. */
async function serveNewestFirst(cap: number, all: readonly (readonly [bigint, string])[]) {
  return await serveJson((_, query) => {
    const before = query.get("before");
    const kept = all.filter(([ts]) => before === null || ts < BigInt(before)).map(([, text]) => text);
    return { body: itemsText(kept.toReversed().slice(0, cap)) };
  });
}

const groups = [10n, 10n, 20n, 30n, 30n, 30n, 40n, 50n, 50n].map((ts, i) => [ts, row(ts, i)] as const);

test("rows that come newest first are handed out oldest first, whole past any cap, and leave no file", async () => {
  // of its own, for other processes put rows aside, too
  const folder = mkdtempSync(join(tmpdir(), "runvault-turned-"));
  vi.stubEnv("TMPDIR", folder);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  const profile = profileOf({ tables: { fills: fillsRoute({ order: "descending" }) } });
  const all = groups.map(([, text]) => text);
  for (const cap of [4, 5, 8, 9, 100]) {
    await using server = await serveNewestFirst(cap, groups);
    expect(await read(server, profile)).toMatchObject({ lines: all, error: undefined });
    expect((await read(server, profile, { limit: 3 })).lines).toEqual(all.slice(0, 3));
  }
  await using server = await serveNewestFirst(3, groups);
  const { lines, error } = await read(server, profile);
  expect(error?.code).toBe("timestamp_capped");
  expect(lines).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

test("many rows that come newest first are turned round across the pieces of their file", async () => {
  const many = Array.from({ length: 9000 }, (_, i) => row(i, i, `,"x":"${"y".repeat(i % 700)}"`));
  const long = row(9000, 9000, `,"x":"${"z".repeat(3_000_000)}"`);
  const all = [...many.slice(0, 4000), long, ...many.slice(4000)];
  await using server = await serveJson((_, query) => {
    const start = Number(query.get("cursor") ?? 0);
    const page = all.toReversed().slice(start, start + 4000);
    return { body: itemsText(page, { next: start + 4000 < all.length ? start + 4000 : null }) };
  });
  const pages = { by: "cursor", send: "cursor", next: { body: ["next"] } } as const;
  const profile = profileOf({ tables: { fills: fillsRoute({ order: "descending", pages }) } });
  const { lines, error } = await read(server, profile);
  expect(error).toBeUndefined();
  expect(lines.length).toBe(all.length);
  expect(lines.every((line, i) => line === all[i])).toBe(true);
});

test("newest first that is not is an error, and so is an end of the window that is ignored", async () => {
  const profile = profileOf({ tables: { fills: fillsRoute({ order: "descending" }) } });
  await using oldest = await serveJson(() => ({ body: itemsText(groups.map(([, text]) => text)) }));
  expect((await read(oldest, profile)).error?.code).toBe("row_order");
  await using ignoring = await serveJson(() => ({
    body: itemsText(groups.map(([, text]) => text).toReversed()),
  }));
  expect((await read(ignoring, profile)).error?.code).toBe("row_order");
});

test("a cut of rows that are put aside is asked for again, whole", async () => {
  let asked = 0;
  const text = itemsText(groups.map(([, line]) => line).toReversed());
  await using server = await serveHttp((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const isCut = asked++ === 0;
    response.write(text.slice(0, isCut ? 100 : undefined), () =>
      isCut ? response.destroy() : response.end(),
    );
  });
  const route = fillsRoute({ ...request("/trades", { to: undefined }), order: "descending" });
  const { lines, error } = await read(server, profileOf({ tables: { fills: route } }), {}, 1);
  expect(error).toBeUndefined();
  expect(lines).toEqual(groups.map(([, line]) => line));
});

test("an answer that a cap ends ahead of what was asked for, within a unit, is not taken for no rows", async () => {
  const within = [1n, 2n, 3n, 4n, 5n, 2n * ms].map((ts, i) => [ts, row(ts, i)] as const);
  const serveCapped = (cap: number) =>
    serveJson((_, query) => {
      const after = BigInt(query.get("after") ?? 0) * ms;
      const before = BigInt(query.get("before") ?? 99) * ms;
      return {
        body: itemsText(
          within
            .filter(([ts]) => ts >= after && ts < before)
            .map(([, text]) => text)
            .slice(0, cap),
        ),
      };
    });
  const times = { unit: "ms", from: "inclusive", to: "exclusive" } as const;
  const profile = profileOf({ tables: { fills: fillsRoute({ times }) } });
  await using capped = await serveCapped(3);
  expect((await read(capped, profile, { from: 4n })).error?.code).toBe("timestamp_capped");
  await using whole = await serveCapped(9);
  expect((await read(whole, profile, { from: 4n })).lines.length).toBe(3);
  expect(await read(whole, profile, { from: 6n, to: ms })).toMatchObject({ lines: [], error: undefined });
});
