import { expect, test } from "vitest";
import { SeenSource } from "../../../src/extract/proof/seen-source.ts";
import { lookAhead } from "../../../src/extract/run/run-horizon.ts";
import { tableNamed } from "../../../src/model/profile/table.ts";
import type { StorageFacts } from "../../../src/model/source.ts";

const ms = 1_000_000n;
const settled = 1_767_571_200_500n * ms;
const { signal } = new AbortController();
const run = {
  ...{ instanceId: "alpha", runId: "r1", status: "RUNNING", started: undefined, ended: undefined },
  ...{ final: false, isMarkedFinal: true, storageVersion: undefined },
};
const counted = (rows: bigint, last = settled + ms): StorageFacts =>
  new Map([["fills", { rows, first: settled - 9n * ms, last, schemaFingerprint: "", final: false }]]);

async function lookedAhead(windows: (from: bigint, to: bigint) => StorageFacts | null, last?: bigint) {
  const facts = async (_: unknown, { from, to }: { from?: bigint; to?: bigint }) =>
    to === undefined ? counted(9n, last) : windows(from ?? 0n, to);
  return await lookAhead({ facts }, run, null, settled, new SeenSource(), { signal, fetching: signal });
}

// such a run was UNVERIFIED whenever its latest row was younger than `--settle`: its horizon is in whole milliseconds
test("counts in milliseconds, which tell of no window between, say nothing of a run that goes on", async () => {
  const { facts, factsNow } = await lookedAhead((from, to) =>
    from % ms === 0n && to % ms === 0n ? counted(8n) : null,
  );
  expect([facts, await factsNow()]).toEqual([null, null]);
});

test("counts that ignore bounds are not taken for none", async () => {
  const { facts, countRows } = await lookedAhead(() => counted(9n));
  expect(facts?.get("fills")?.rows).toBe(9n);
  expect(countRows(tableNamed("fills"))).toBeUndefined();
});

test.each([
  ["now less the time that rows may arrive late", settled + ms, settled],
  ["the end of the last timestamp where that is earlier", settled - 2n * ms, settled - 2n * ms + 1n],
])("a run that goes on is asked for up to %s", async (_, last, horizon) => {
  const { until } = await lookedAhead(() => null, last);
  expect(until).toBe(horizon);
});
