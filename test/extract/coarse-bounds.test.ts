import { expect, test } from "vitest";
import { coarseBoundsText } from "../../src/extract/plan/coarse-bounds.ts";
import { rowsOutside } from "../../src/extract/proof/outer-ends.ts";
import { badRowLine } from "../../src/row/bad-row.ts";

const bound = 1_732_838_340_312_000_000n;
// a gateway that compares whole milliseconds was told to be ignoring bounds, and `profile check` found nothing
test.each([
  ["whole milliseconds", bound + 1n, { to: bound }, 1n, "microsecond"],
  ["the same, far from the bound", bound + 999_999n, { to: bound }, 1n, "millisecond"],
  ["the same, of bounds in milliseconds", bound + 1n, { to: bound + 1n }, 1_000_000n, "millisecond"],
  ["a row before its window", bound, { from: bound + 700_000n, to: bound + 10n ** 9n }, 1n, "millisecond"],
  ["an end that is inclusive", bound, { to: bound }, 1n, "take for inclusive"],
  ["bounds that are not heeded", bound + 10n ** 12n, { to: bound }, 1n, undefined],
])("of %s the error says so", (_, ts, bounds, stepNs, says) => {
  const text = coarseBoundsText(ts, bounds, stepNs);
  if (says === undefined) expect(text).toBe("");
  else expect(text).toMatch(new RegExp(says));
});

// a time without a zone was told as rows that were missing
test("a row whose time cannot be read is named with its value, and not called missing", () => {
  const reason = 'ts_event (time): "2024-11-28T23:59:00.9" is no RFC 3339 time with its zone';
  const line = badRowLine({ reason, text: "{}" }, undefined);
  const window = { from: bound, to: bound + 1_000n };
  expect(rowsOutside(window, { ts: undefined, line })).toMatchObject({
    code: "malformed_row",
    message: expect.stringContaining(reason),
    hint: expect.stringContaining("zone"),
  });
  expect(rowsOutside(window, { ts: bound, line: "" })).toMatchObject({ code: "incomplete" });
});
