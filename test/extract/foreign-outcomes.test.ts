import { afterAll, describe, expect, test } from "vitest";
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
    if (fault === "no fault") expect([found, stderr]).toEqual(["COMPLETE", expect.any(String)]);
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
    const isTrue = !isProven || JSON.stringify(await bench.lines(name)) === JSON.stringify(bench.truth(name));
    const words = code === undefined ? state : `${state} \`${code}\``;
    found.push(isTrue ? words : `WRONG ${words}`);
  }
  const said = found.every((one) => one === found[0]) ? found[0]! : found.join(", ");
  const isWhole = found.every((one) => one === "COMPLETE" || one === "ABSENT");
  return isWhole === (status === 0) ? said : `WRONG exit ${status}: ${said}`;
}

afterAll(async () => {
  const rows = Object.entries(foreignFaults).map(([fault, { of = names }]) => {
    const cells = names.map((name) => (of.includes(name) ? outcomes.get(`${fault} ${name}`) : ""));
    return `| ${[fault, ...cells].join(" | ")} |`;
  });
  console.log(rows.join("\n"));
});
