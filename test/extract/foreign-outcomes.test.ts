import { describe, expect, test } from "vitest";
import { CorvidBench, ForeignBench, outcomeOf } from "../fixtures/foreign/foreign-bench.ts";
import { foreignFaults } from "../fixtures/foreign/foreign-faults.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";

const names = Object.keys(dialects) as DialectName[];
/** By fault and gateway. */
const outcomes = new Map<string, string>();

describe.each(Object.entries(foreignFaults))("%s", (fault, { faults, of = names, corvid }) => {
  test.each(of)("%s: nothing is called complete that is not what the gateway has", async (name) => {
    await using bench = await ForeignBench.open(name, faults);
    const { status, stderr } = await bench.archive();
    const found = await outcomeOf(bench, status);
    outcomes.set(`${fault} ${name}`, found);
    expect(`${found}\n${stderr}`).not.toMatch(/WRONG/);
    // what lists no runs never says that one has ended
    const whole = name === "dahlia" ? "OPEN" : "COMPLETE";
    if (fault === "no fault") expect([found, stderr]).toEqual([whole, expect.any(String)]);
  });

  test.runIf(corvid !== undefined)("corvid: nor over gRPC", async () => {
    await using bench = await CorvidBench.open(corvid);
    const { status, stderr } = await bench.archive();
    const found = await outcomeOf(bench, status);
    outcomes.set(`${fault} corvid`, found);
    expect(`${found}\n${stderr}`).not.toMatch(/WRONG/);
    if (fault === "no fault") expect([found, stderr]).toEqual(["COMPLETE", expect.any(String)]);
  });
});

const head = `# What comes of gateways that misbehave

\`test/extract/foreign-outcomes.test.ts\` archives one run from each of six gateways that speak nothing of the contract, by
their profiles alone, with one fault at a time, and writes this table (\`npx vitest run test/extract/foreign-outcomes -u\`).
A cell is the state of the table and the code of the error that kept it from more. What is COMPLETE was compared with what
the gateway really has, row by row: no cell stands for a wrong row. An empty cell: the gateway cannot have that fault.

The gateways, in \`test/fixtures/foreign/\`: acme gives pages by cursor, borealis by number, corona by \`Link\` and the newest row
first, dahlia the whole table at once, epsilon by offset, corvid by tokens, over gRPC alone. Corona numbers its rows, corvid those
of one of its two tables; epsilon and corvid count them. Where a cell has two states, they are those of fills and of factors.
`;

test("the table of outcomes is the one in docs/", async () => {
  const rows = Object.keys(foreignFaults).map((fault) => {
    const cells = [...names, "corvid"].map((name) => outcomes.get(`${fault} ${name}`) ?? "");
    return `| ${[fault, ...cells].join(" | ")} |`;
  });
  const columns = ["fault", ...names, "corvid"];
  const table = [`| ${columns.join(" | ")} |`, `|${" --- |".repeat(columns.length)}`, ...rows].join("\n");
  await expect(`${head}\n${table}\n`).toMatchFileSnapshot("../../docs/foreign-gateways.md");
});
