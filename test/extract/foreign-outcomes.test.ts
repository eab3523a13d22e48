// @module-tag slow
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";
import { foreignFaults } from "../fixtures/foreign/foreign-faults.ts";
import {
  type ForeignName,
  foreignNames,
  foreignOutcome,
  gatewaysOf,
} from "../fixtures/foreign/foreign-outcomes.ts";

/** The cells of the table of outcomes, by fault; test/all/foreign-outcomes.test.ts, which writes it, tries every one of them. */
const table = new Map(
  readFileSync(inProject("test/fixtures/foreign/outcomes.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.slice(2, -2).split(" | "))
    .map(([fault, ...cells]) => [fault, cells]),
);

const cellOf = (fault: string, name: ForeignName) => table.get(fault)?.[foreignNames.indexOf(name)];
const cells = Map.groupBy([...table.values()].flat(), (cell) => cell);
const timesOf = (fault: string, name: ForeignName) => cells.get(cellOf(fault, name) ?? "")?.length ?? 0;

// each fault of one gateway: of that which comes to what others do not, or of another one each time
const tried = Object.keys(foreignFaults).flatMap((fault, nth) => {
  const names = gatewaysOf(fault);
  const turned = [...names.slice(nth % names.length), ...names.slice(0, nth % names.length)];
  const seldomFirst = turned.sort((a, b) => timesOf(fault, a) - timesOf(fault, b));
  return (fault === "no fault" ? names : seldomFirst.slice(0, 1)).map((name) => ({ fault, name }));
});

describe("a gateway that speaks nothing of the contract has the outcome in the table", () => {
  test.each(tried)("$fault: $name", async ({ fault, name }) => {
    expect(await foreignOutcome(fault, name)).toBe(cellOf(fault, name));
  });
});
