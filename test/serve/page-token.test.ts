import { describe, expect, test } from "vitest";
import { type Listing, PageTokens, runOfToken } from "../../src/serve/history/page-token.ts";
import { LiveWorld } from "../fixtures/served/live-world.ts";
import { failure, historyClient } from "../fixtures/served/rpc-clients.ts";

const listing: Listing = {
  run: { instanceId: "alpha", runId: "2022-01-01" },
  table: "fills",
  from: 5n,
  filters: { symbol: "BTC" },
};
const position = { page: 3, event: -7n, given: 2, mark: "00112233445566ff" };
const key = Buffer.from("0123456789abcdef0123456789abcdef");

describe("a page token", () => {
  test("is read by whoever has its key, as it was written", () => {
    const token = new PageTokens(key).format(listing, position);
    expect(new PageTokens(Buffer.from(key)).parse(token, listing)).toMatchObject(position);
    expect(runOfToken(token)).toBe("2022-01-01");
  });

  test("has expired under another key, and under that of another start", () => {
    const expired = /^page_token has expired: it was created with another key$/;
    const token = new PageTokens(key).format(listing, position);
    for (const other of [new PageTokens(), new PageTokens(Buffer.from(key).fill(1, 31))]) {
      expect(() => other.parse(token, listing)).toThrow(expired);
    }
    expect(() => new PageTokens(key).parse(new PageTokens().format(listing, position), listing)).toThrow(
      expired,
    );
  });

  test("cannot be made or changed without the key, even by who knows which key it is", () => {
    const token = Buffer.from(new PageTokens(key).format(listing, position), "base64url");
    const tokens = new PageTokens(key);
    for (let at = 0; at < token.length; at += 1) {
      const changed = Buffer.from(token);
      changed[at]! ^= 1;
      expect(() => tokens.parse(changed.toString("base64url"), listing)).toThrow(/page_token/);
    }
    // the forger's own key, with the head that says it is the server's
    const forged = Buffer.from(new PageTokens().format(listing, { ...position, event: 9n }), "base64url");
    token.copy(forged, 16, 16, 21);
    expect(() => tokens.parse(forged.toString("base64url"), listing)).toThrow(/belongs to another request/);
  });
});

test("servers with one key go on with each other's listings; others refuse them, and give no rows", async () => {
  await using one = await LiveWorld.open({ rows: 500, serve: { pageKey: key } });
  await using same = await LiveWorld.open({ rows: 500, serve: { pageKey: key } });
  await using other = await LiveWorld.open({ rows: 500 });
  const request = { table: "bars", selection: one.run, pageSize: 3 };
  const { nextPageToken: pageToken } = await historyClient(one.server).previewTable(request);
  const onward = await historyClient(one.server).previewTable({ ...request, pageToken });
  const elsewhere = await historyClient(same.server).previewTable({ ...request, pageToken });
  expect(elsewhere.rows.map(({ row }) => row.value)).toEqual(onward.rows.map(({ row }) => row.value));
  expect(elsewhere.rows).toHaveLength(3);
  const refused = historyClient(other.server).previewTable({ ...request, pageToken });
  expect(await failure(refused)).toMatchObject({ history: "invalid_argument" });
});
