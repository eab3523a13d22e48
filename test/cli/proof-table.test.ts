import { expect, test } from "vitest";
import { outcomeOf, proofCells, proofTableWorlds, wayOf } from "../fixtures/proof/proof-table.ts";
import { proofWorlds } from "../fixtures/proof/proof-worlds.ts";

// the other cells are test/all/proof-table.test.ts
const cells = proofCells.filter(({ isInRoom }) => isInRoom);

test("every world is in the table once", () => {
  expect(proofTableWorlds).toEqual(Object.keys(proofWorlds));
});

test.each(cells.map((cell) => ({ ...cell, way: wayOf(cell) })))(
  "archive $way comes to what the table says of $world",
  async (cell) => {
    expect(await outcomeOf(cell)).toBe(cell.outcome);
  },
);
