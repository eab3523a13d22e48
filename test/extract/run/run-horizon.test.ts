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
const counted = (rows: bigint): StorageFacts =>
  new Map([
    ["fills", { rows, first: settled - 9n * ms, last: settled + ms, schemaFingerprint: "", final: false }],
  ]);

async function lookedAhead(windows: (from: bigint, to: bigint) => StorageFacts | null) {
  const facts = async (_: unknown, { from, to }: { from?: bigint; to?: bigint }) =>
    to === undefined ? counted(9n) : windows(from ?? 0n, to);
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
