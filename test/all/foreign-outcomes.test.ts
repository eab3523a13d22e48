import { describe, expect, test } from "vitest";
import { foreignFaults } from "../fixtures/foreign/foreign-faults.ts";
import { foreignNames, foreignOutcome, gatewaysOf } from "../fixtures/foreign/foreign-outcomes.ts";

/** By fault and gateway. */
const outcomes = new Map<string, string>();

describe.each(Object.keys(foreignFaults))("%s", (fault) => {
  test.each(gatewaysOf(fault))(
    "%s: nothing is called complete that is not what the gateway has",
    async (name) => {
      const found = await foreignOutcome(fault, name);
      outcomes.set(`${fault} ${name}`, found);
      // what lists no runs never says that one has ended
      const whole = name === "dahlia" ? "OPEN" : "COMPLETE";
      if (fault === "no fault") expect(found).toBe(whole);
    },
  );
});

const head = `# What comes of gateways that misbehave

\`test/all/foreign-outcomes.test.ts\` archives one run from each of six gateways that speak nothing of the contract, by
their profiles alone, with one fault at a time, and writes this table (\`npx vitest run test/all/foreign-outcomes -u\`).
A cell is the state of the table and the code of the error that kept it from more. What is COMPLETE was compared with what
the gateway really has, row by row: no cell stands for a wrong row. An empty cell: the gateway cannot have that fault.

The gateways, in \`test/fixtures/foreign/\`: acme gives pages by cursor, borealis by number, corona by \`Link\` and the newest row
first, dahlia the whole table at once, epsilon by offset, corvid by tokens, over gRPC alone. Corona numbers its rows, corvid those
of one of its two tables; epsilon and corvid count them. Where a cell has two states, they are those of fills and of factors.
`;

test("the table of outcomes is the one that is kept", async () => {
  const rows = Object.keys(foreignFaults).map((fault) => {
    const cells = foreignNames.map((name) => outcomes.get(`${fault} ${name}`) ?? "");
    return `| ${[fault, ...cells].join(" | ")} |`;
  });
  const columns = ["fault", ...foreignNames];
  const table = [`| ${columns.join(" | ")} |`, `|${" --- |".repeat(columns.length)}`, ...rows].join("\n");
  await expect(`${head}\n${table}\n`).toMatchFileSnapshot("../fixtures/foreign/outcomes.md");
});
