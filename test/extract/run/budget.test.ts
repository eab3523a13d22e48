import { expect, test } from "vitest";
import { openBudget } from "../../../src/extract/run/budget.ts";
import type { Gateway } from "../../../src/gateway/gateway.ts";
import type { RowRequest } from "../../../src/model/source.ts";

const request: RowRequest = { instanceId: "alpha", runId: "r1", table: "fills" };

async function* chunks(): AsyncGenerator<Uint8Array, undefined> {
  for (let sent = 0; sent < 4; sent++) yield Buffer.alloc(600_000);
}

test.each(["rows", "pagedRows"] as const)("rows count that a gateway gives as %s", async (way) => {
  using budget = openBudget({ maxBytes: 1 }, { rows: chunks, pagedRows: chunks } as unknown as Gateway);
  const taken: boolean[] = [];
  for await (const _ of budget.gateway[way]!(request)) taken.push(budget.signal.aborted);
  expect(taken).toEqual([false, true, true, true]);
  const message = expect.stringContaining("--max-bytes was reached: 1.2 MB of rows");
  expect(budget.signal.reason).toMatchObject({ code: "incomplete", message });
});
