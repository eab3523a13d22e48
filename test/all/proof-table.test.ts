import { expect, test } from "vitest";
import { outcomeOf, proofCells, wayOf } from "../fixtures/proof/proof-table.ts";

// the other cells are test/cli/proof-table.test.ts
const cells = proofCells.filter(({ isInRoom }) => !isInRoom);

test.each(cells.map((cell) => ({ ...cell, way: wayOf(cell) })))(
  "archive $way comes to what the table says of $world",
  async (cell) => {
    expect(await outcomeOf(cell)).toBe(cell.outcome);
  },
);
