import { expect, test } from "vitest";
import { checkedRows, requireLimit, requireOrder } from "../../src/model/profile/row-request.ts";
import { tableNamed } from "../../src/model/profile/table.ts";

const request = { instanceId: "a", runId: "1", table: "bars" } as const;

/** A filter as callers without types leave it out. */
function unset(name: string): object {
  return { [name]: undefined };
}

test("a request for rows has its table and the filters that are set", () => {
  const filters = { symbol: "X", ...unset("venue"), resource_key: "" };
  expect(checkedRows({ ...request, filters, limit: 1 })).toEqual({
    table: tableNamed("bars"),
    filters: [
      ["symbol", "X"],
      ["resource_key", ""],
    ],
  });
});

test("a filter of another table is refused only where it is set", () => {
  expect(checkedRows({ ...request, filters: unset("account") }).filters).toEqual([]);
  expect(() => checkedRows({ ...request, filters: { account: "A" } })).toThrow(
    "the filter account does not apply to bars",
  );
});

test.each([0, -1, 1.5, Number.NaN, 2 ** 53])("%s is no limit", (limit) => {
  expect(() => checkedRows({ ...request, limit })).toThrow(
    `limit must be a whole number from 1, not ${limit}`,
  );
  expect(() => requireLimit(limit, '"so"')).toThrow('limit must be a whole number from 1, not "so"');
});

test("bounds may be empty, but not swapped", () => {
  requireOrder({ from: 1n, to: 1n });
  requireOrder({ from: 1n });
  expect(() => requireOrder({ from: 2n, to: 1n })).toThrow("from 2 is after to 1");
});
