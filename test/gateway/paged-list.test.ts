import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { noDocuments, profileOf, request } from "../fixtures/source/rest-profile.ts";

const entry = (n: number) => ({
  run_id: `r${n}`,
  instance_id: "i",
  status: "FINISHED",
  ts_started: `${n}000`,
  ts_ended: `${n}001`,
  final: true,
});
const [first, second] = [
  [1, 2, 3],
  [4, 5, 6],
];

/** What a list's answer has beside its runs, and headers; by the query, of which the rest is to be heeded. */
interface Page {
  readonly runs?: readonly number[];
  readonly beside?: object;
  readonly headers?: IncomingHttpHeaders;
  readonly status?: number;
}
type Pages = (query: URLSearchParams, origin: string) => Page;

/** The runs that a gateway of these pages is taken to have, and what is said of others. */
async function listed(pages: Pages) {
  await using server = await serveHttp((asked, response) => {
    const url = new URL(asked.url!, `http://${asked.headers.host}`);
    const { runs = [], beside = {}, headers = {}, status = 200 } = pages(url.searchParams, url.origin);
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ runs: runs.map(entry), ...beside }));
  });
  await using gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) });
  const [listing] = await gateway.listings!();
  const runs = (await listing!.runs("i"))!;
  const document = await gateway.document({ instanceId: "i", runId: "r6" }, "run");
  return {
    runs: runs.map(({ runId }) => Number(runId.slice(1))),
    rest: runs.rest,
    hasDocument: document !== null,
    requests: server.requests.length / 2,
  };
}

/** Two pages: the second where the query has what the first says. */
const twoPages =
  (name: string, value: string, beside: (origin: string) => object, headers = {}): Pages =>
  (query, origin) =>
    query.get(name) === value ? { runs: second } : { runs: first, beside: beside(origin), headers };

describe("a list that says where it goes on", () => {
  // caught by: the first of several pages, taken for the whole list
  test.each([
    ["a Link", twoPages("page", "2", () => ({}), { link: '</history/runs?instance=i&page=2>; rel="next"' })],
    ["a whole address", twoPages("page", "2", (origin) => ({ next: `${origin}/history/runs?page=2` }))],
    ["a query", twoPages("page", "2", () => ({ next: "?instance=i&page=2" }))],
    ["links by name", twoPages("p", "2", () => ({ _links: { next: { href: "/history/runs?p=2" } } }))],
    ["a list of links", twoPages("p", "2", () => ({ links: [{ rel: "next", href: "/history/runs?p=2" }] }))],
    ["a token", twoPages("page_token", "/9j?=", () => ({ next_page_token: "/9j?=" }))],
    ["a token in camel case", twoPages("pageToken", "x", () => ({ nextPageToken: "x", total: 6 }))],
    ["a cursor", twoPages("cursor", "x", () => ({ paging: { has_more: true, next_cursor: "x" } }))],
    ["a cursor called next", twoPages("cursor", "x", () => ({ page: { next: "x" } }))],
    ["a number", twoPages("page", "2", () => ({ next_page: 2 }))],
    ["a number in a header", twoPages("page", "2", () => ({}), { "x-next-page": "2" })],
    [
      "the end of its page",
      twoPages("after", "x", () => ({ page_info: { hasNextPage: true, endCursor: "x" } })),
    ],
  ])("by %s is followed to its end", async (_, pages) => {
    expect(await listed(pages)).toEqual({
      runs: [...first!, ...second!],
      rest: undefined,
      hasDocument: true,
      requests: 2,
    });
  });

  // caught by: an alarm each night for an honest gateway whose last page names one more
  test.each<[string, Pages]>([
    ["empty", (query) => (query.has("cursor") ? {} : { runs: first!, beside: { next_cursor: "x" } })],
    ["nothing new", () => ({ runs: first!, headers: { link: "<?>; rel=next" } })],
    ["empty, as it is itself", () => ({ beside: { cursor: "x" } })],
    [
      "no content",
      (query) => (query.has("p") ? { status: 204 } : { runs: first!, beside: { next: "?p=2" } }),
    ],
    [
      "nothing but its last entry",
      (query) =>
        query.has("cursor")
          ? { runs: [3], beside: { cursor: "y" } }
          : { runs: first!, beside: { cursor: "y" } },
    ],
  ])("is whole where what follows is %s", async (_, pages) => {
    const { runs, rest, requests } = await listed(pages);
    expect([first, []]).toContainEqual(runs);
    expect([rest, requests]).toEqual([undefined, 2]);
  });
});

// caught by: a page whose entries were filtered away, taken for the last one
test("a list is followed past empty pages that name another, three in a row", async () => {
  const tokens = ["", "a", "b", "c", "d", "e"];
  const pages =
    (filled: number): Pages =>
    (query) => {
      const page = tokens.indexOf(query.get("page_token") ?? "");
      const runs = page === 0 ? first! : page === filled ? second! : [];
      return { runs, beside: { next_page_token: tokens[page + 1] ?? "" } };
    };
  expect(await listed(pages(4))).toMatchObject({ runs: [...first!, ...second!], rest: undefined });
  // a gateway may name one more page forever
  expect(await listed(pages(9))).toMatchObject({ runs: first, rest: undefined, requests: 5 });
});

describe("a list that does not say how it goes on", () => {
  // caught by: a list that says that it is cut, taken for whole
  test.each<[string, Pages, RegExp, number]>([
    ["has_more", () => ({ runs: first!, beside: { has_more: true } }), /has_more says true/, 4],
    ["a total", () => ({ runs: first!, beside: { meta: { total: 6 } } }), /meta\.total says 6/, 6],
    [
      "a total in a header",
      () => ({ runs: first!, headers: { "x-total-count": "6" } }),
      /x-total-count says 6/,
      6,
    ],
    ["its own total", () => ({ runs: first!, beside: { runCount: 6 } }), /runCount says 6/, 6],
    [
      "itself",
      () => ({ runs: first!, beside: { incomplete: true, has_more: false } }),
      /incomplete says true/,
      4,
    ],
    [
      "its last page, which is empty",
      (query) =>
        query.has("cursor")
          ? { beside: { partial: true } }
          : { runs: first!, beside: { cursor: "x", partial: false } },
      /partial says true/,
      4,
    ],
    [
      "a token that is not heeded",
      () => ({ runs: first!, beside: { next_page_token: "x" } }),
      /next_page_token, and asking with page_token brings the same page/,
      4,
    ],
    [
      "a token that is not heeded, in any order",
      (query) => ({
        runs: query.has("cursor") ? first!.toReversed() : first!,
        beside: { next_cursor: query.has("cursor") ? "y" : "x" },
      }),
      /brings the same page/,
      4,
    ],
    [
      "an address elsewhere",
      () => ({ runs: first!, beside: { next: "http://127.0.0.2:1/runs?page=2" } }),
      /another origin/,
      4,
    ],
    [
      "a page that is refused",
      (query) => (query.has("cursor") ? { status: 400 } : { runs: first!, beside: { cursor: "x" } }),
      /which failed/,
      4,
    ],
  ])("is doubted: %s", async (_, pages, text, least) => {
    const { runs, rest } = await listed(pages);
    expect(runs).toEqual(first);
    expect(rest).toEqual({ text: expect.stringMatching(text), least });
  });

  // caught by: what a gateway says of other things, taken for pages
  test.each<[string, object]>([
    ["fields that say the opposite", { has_more: false, next_cursor: "x", next: null, total: 3, count: 3 }],
    ["empty fields", { next_page_token: "", next: null, more: false, truncated: false }],
    ["totals of other things", { total_rows: 600, fills_total: 5, totals: { equity: 9 } }],
    ["what comes next in another sense", { next_run_at: "2022-01-02", next_run: "r7", nextFunding: 8 }],
  ])("is whole with %s", async (_, beside) => {
    expect(await listed(() => ({ runs: first!, beside }))).toMatchObject({
      runs: first,
      rest: undefined,
      requests: 1,
    });
  });
});

// caught by: a total that the first page alone has, forgotten behind it
test("a list is doubted whose pages end ahead of the total of the first", async () => {
  const pages = twoPages("page", "2", () => ({ next_page: 2, total: 7 }));
  expect(await listed(pages)).toMatchObject({ rest: { text: "total says 7", least: 7 } });
});

// caught by: a profile's word that is not heeded, and a doubt that is lost where ids are given by name
test("a profile calls a list whole, or has it followed and doubted as any other", async () => {
  await using server = await serveHttp((asked, response) => {
    const isSecond = asked.url!.includes("cursor=x");
    const desks = isSecond ? [{ name: "beta" }] : [{ name: "alpha" }];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ desks, paging: isSecond ? {} : { cursor: "x" }, total: 5 }));
  });
  const instances = async (isWhole: boolean) => {
    const none = { from: undefined, to: undefined, limit: undefined, instance: undefined, run: undefined };
    const route = { ...request("/desks", none), list: ["desks"], id: ["name"], runs: undefined, isWhole };
    const profile = profileOf({ documents: { ...noDocuments, instances: route, given: { gamma: ["g"] } } });
    await using gateway = openGateway(
      { baseUrl: server.url, profile, retry: quickRetry({ retries: 0 }) },
      "auto",
    );
    const [listing] = await gateway.listings!();
    const entries = await listing!.instances();
    return { ids: entries.map(({ instanceId }) => instanceId), rest: entries.rest };
  };
  expect(await instances(true)).toEqual({ ids: ["alpha", "gamma"], rest: undefined });
  expect(await instances(false)).toEqual({
    ids: ["alpha", "beta", "gamma"],
    rest: { text: "total says 5", least: 5 },
  });
});
