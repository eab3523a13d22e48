import { describe, expect, test } from "vitest";
import type { TableName } from "../../src/model/profile/table.ts";
import { ForeignBench } from "../fixtures/foreign/foreign-bench.ts";
import { foreignFaults } from "../fixtures/foreign/foreign-faults.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";

const names = Object.keys(dialects) as DialectName[];
/** By fault and gateway. */
const outcomes = new Map<string, string>();

describe.each(Object.entries(foreignFaults))("%s", (fault, { faults, of = names }) => {
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
});

/** What became of the worst table, and why; whatever is proven has to be what is true. */
async function outcomeOf(bench: ForeignBench, status: number | null): Promise<string> {
  const found: string[] = [];
  for (const name of bench.gateway.dialect.tables as TableName[]) {
    const table = await bench.table(name);
    const { state = "nothing", proven = null } = table ?? {};
    const code = table?.attempt.error?.code;
    const isProven = proven !== null && proven.certificate !== null;
    const until = proven?.certificate?.until;
    const isTrue =
      !isProven || JSON.stringify(await bench.lines(name)) === JSON.stringify(bench.truth(name, until));
    const words = code === undefined ? state : `${state} \`${code}\``;
    found.push(isTrue ? words : `WRONG ${words}`);
  }
  const said = found.every((one) => one === found[0]) ? found[0]! : found.join(", ");
  const isWhole = found.every((one) => ["COMPLETE", "OPEN", "ABSENT"].includes(one));
  return isWhole === (status === 0) ? said : `WRONG exit ${status}: ${said}`;
}

const head = `# What comes of gateways that misbehave

\`test/extract/foreign-outcomes.test.ts\` archives one run from each of five gateways that speak nothing of the contract, by
their profiles alone, with one fault at a time, and writes this table (\`npx vitest run test/extract/foreign-outcomes -u\`).
A cell is the state of the table and the code of the error that kept it from more. What is COMPLETE was compared with what
the gateway really has, row by row: no cell stands for a wrong row. An empty cell: the gateway cannot have that fault.

The gateways, in \`test/fixtures/foreign/\`: acme gives pages by cursor, borealis by number, corona by \`Link\` and the newest row
first, dahlia the whole table at once, epsilon by offset. Corona alone numbers its rows, epsilon alone counts them.
`;

test("the table of outcomes is the one in docs/", async () => {
  const rows = Object.entries(foreignFaults).map(([fault, { of = names }]) => {
    const cells = names.map((name) => (of.includes(name) ? outcomes.get(`${fault} ${name}`) : ""));
    return `| ${[fault, ...cells].join(" | ")} |`;
  });
  const columns = ["fault", ...names];
  const table = [`| ${columns.join(" | ")} |`, `|${" --- |".repeat(columns.length)}`, ...rows].join("\n");
  await expect(`${head}\n${table}\n`).toMatchFileSnapshot("../../docs/foreign-gateways.md");
});
