// @module-tag slow
import { expect, test } from "vitest";
import { outcomeOf, proofCells, proofTableWorlds, wayOf } from "../fixtures/proof/proof-table.ts";
import { proofWorlds } from "../fixtures/proof/proof-worlds.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

// over REST, with storage facts, and without where that comes to more than another proof; the others in test:all
const cells = proofCells.filter(({ isInRoom }) => isInRoom !== isTestAll);

test("every world is in the table once", () => {
  expect(proofTableWorlds).toEqual(Object.keys(proofWorlds));
});

test.each(cells.map((cell) => ({ ...cell, way: wayOf(cell) })))(
  "archive $way comes to what the table says of $world",
  async (cell) => {
    expect(await outcomeOf(cell)).toBe(cell.outcome);
  },
);
