import { expect, test } from "vitest";
import { alignedTable } from "../../src/analytics/render/aligned-table.ts";
import { painter } from "../../src/cli/output/painter.ts";

const cells = [
  ["alpha-1/a", "INCOMPLETE", "7"],
  ["alpha-1/b\u001b[31m", "COMPLETE", "1,200"],
];

test("colours take no room in a table, and those of a text from outside are escaped", () => {
  const plain = alignedTable(["run", "state", "rows"], cells, [false, false, true]);
  const coloured = alignedTable(["run", "state", "rows"], cells, [false, false, true], painter(true));
  expect(coloured).toContain("\u001b[31mINCOMPLETE\u001b[39m");
  expect(coloured).toContain("\u001b[32mCOMPLETE  \u001b[39m");
  expect(coloured.replaceAll(/\p{Cc}\[3[29]m|\p{Cc}\[31m/gu, "")).toBe(plain);
  expect(plain).toBe(
    [
      "run                  state        rows",
      "-------------------  ----------  -----",
      "alpha-1/a            INCOMPLETE      7",
      "alpha-1/b\\u001b[31m  COMPLETE    1,200",
      "",
    ].join("\n"),
  );
});

test("without colours a state is as it is", () => {
  expect(painter(false)("INCOMPLETE")).toBe("INCOMPLETE");
});
