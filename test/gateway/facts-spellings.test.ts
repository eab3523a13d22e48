import { expect, it } from "vitest";
import { readFacts } from "../../src/gateway/documents.ts";
import { Notices } from "../../src/gateway/notices.ts";
import { UnknownFields } from "../../src/gateway/rpc/unknown-fields.ts";

const factsOf = (...tables: readonly (readonly [string, number])[]) => {
  const entries = tables.map(([table, rows]) => ({
    ...{ table, rows: `${rows}`, min_ts_event: "0", max_ts_event: "0", final: true },
  }));
  return readFacts(
    Buffer.from(JSON.stringify({ tables: entries })),
    {},
    new UnknownFields(new Notices(undefined)),
  );
};

// "orders" with 0 rows beside "Orders" with 40 was COMPLETE without any, for the other name was left out
it.each([
  [
    [
      ["orders", 0],
      ["Orders", 40],
    ],
  ],
  [[["order-book", 3]]],
  [[["FILLS", 1]]],
] as const)("facts that spell a table otherwise are refused with both names: %o", async (tables) => {
  await expect(factsOf(...tables)).rejects.toMatchObject({
    code: "not_a_gateway",
    message: expect.stringMatching(
      /"(Orders|order-book|FILLS)" is another spelling of (orders|order_book|fills)$/,
    ),
  });
});

// a gateway may count tables that have nothing to do with ours
it("facts of tables of other names are left out", async () => {
  expect([...(await factsOf(["orders", 4], ["Orderbooks", 3], ["audit-log", 2])).keys()]).toEqual(["orders"]);
});
