import { expect, test } from "vitest";
import { coarseBoundsText } from "../../src/extract/plan/coarse-bounds.ts";
import { rowsOutside } from "../../src/extract/proof/outer-ends.ts";
import { badRowLine } from "../../src/row/bad-row.ts";
import { run, TableWorld } from "../fixtures/archive/table-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

const bound = 1_732_838_340_312_000_000n;
// a gateway that compares whole milliseconds was told to be ignoring bounds, and `profile check` found nothing
test.each([
  ["whole milliseconds", bound + 1n, { to: bound }, 1n, "microsecond"],
  ["the same, far from the bound", bound + 999_999n, { to: bound }, 1n, "millisecond"],
  ["the same, of bounds in milliseconds", bound + 1n, { to: bound + 1n }, 1_000_000n, "millisecond"],
  ["a row before its window", bound, { from: bound + 700_000n, to: bound + 10n ** 9n }, 1n, "millisecond"],
  ["an end that is inclusive", bound, { to: bound }, 1n, "treat as inclusive"],
  ["bounds that are not heeded", bound + 10n ** 12n, { to: bound }, 1n, undefined],
])("of %s the error says so", (_, ts, bounds, stepNs, says) => {
  const text = coarseBoundsText(ts, bounds, stepNs);
  if (says === undefined) expect(text).toBe("");
  else expect(text).toMatch(new RegExp(says));
});

// a time without a zone was told as rows that were missing
test("a row whose time cannot be read is named with its value, and not called missing", () => {
  const reason = 'ts_event (time): "2024-11-28T23:59:00.9" is not an RFC 3339 time with a zone';
  const line = badRowLine({ reason, text: "{}" }, undefined);
  const window = { from: bound, to: bound + 1_000n };
  expect(rowsOutside(window, { ts: undefined, line })).toMatchObject({
    code: "malformed_row",
    message: expect.stringContaining(reason),
    hint: expect.stringContaining("zone"),
  });
  expect(rowsOutside(window, { ts: bound, line: "" })).toMatchObject({ code: "incomplete" });
});

const times = [0n, 1n, 2n, 3n, 4n, 5n].map((n) => bound + n);
const floor = (ns: bigint) => (time: bigint) => (time / ns) * ns;
const gateways = {
  "ignores from": { from: () => 0n },
  "ignores to": { to: () => 2n ** 62n },
  "takes the end for inclusive": { to: (time: bigint) => time + 1n },
  "floors to seconds": { from: floor(1_000_000_000n), to: floor(1_000_000_000n) },
  "floors to milliseconds": { from: floor(1_000_000n), to: floor(1_000_000n) },
  "floors to microseconds": { from: floor(1_000n), to: floor(1_000n) },
};

// the cause told was out-of-order rows, an inclusive end, or a unit finer than the gateway's own
test.each([
  ["ignores from", "ignore from", {}],
  ["ignores to", "ignore to", {}],
  ["takes the end for inclusive", "treat as inclusive", {}],
  ["floors to seconds", "whole seconds", {}],
  ["floors to milliseconds", "whole milliseconds", {}],
  ["floors to microseconds", "whole microseconds", {}],
  ["floors to milliseconds", "whole milliseconds", { literal: true }],
  ["ignores from", "ignore from", { literal: true }],
] as const)("an archive of a gateway that %s says so: %s %o", async (kind, says, manners) => {
  await using tables = await TableWorld.create();
  const rows = rowsAt(run, "fills", [...times, ...times.map((ts) => ts + 3_600_000_000_000n)]);
  const ended = bound + 7_200_000_000_000n;
  const source = new ArraySource(run, new Map([["fills", rows]]), {
    times: { started: bound - 3_600_000_000_000n, ended },
    cap: 5,
    ...manners,
  });
  const bounds: { from?: (time: bigint) => bigint; to?: (time: bigint) => bigint } = gateways[kind];
  const answer = source.rows.bind(source);
  source.rows = (request) => {
    const from = request.from === undefined ? undefined : (bounds.from?.(request.from) ?? request.from);
    const to = request.to === undefined ? undefined : (bounds.to?.(request.to) ?? request.to);
    return answer({ ...request, from, to });
  };
  const { fills } = (await tables.archiveRun(source)).manifest.tables;
  expect(fills!.attempt.error?.message).toMatch(new RegExp(says));
});
