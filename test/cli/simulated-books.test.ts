// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { bookFaultKinds } from "../../src/simulator/books/book-fault.ts";
import { runInside, startInside } from "../fixtures/command/command-inside.ts";
import { bookBreaks } from "../fixtures/source/book-check.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-books-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const small = () => ["simulate", "--rows", "900", "--runs", "1", "--cache", join(folder, "cache")];

test.each([
  [["--symbols", "0"], "--symbols must be a whole number from 1 to 100"],
  [["--symbols", "many"], "--symbols must be a whole number from 1 to 100"],
  [["--transfers", "-1"], "--transfers must be a whole number from 0 to 10000"],
  [["--currencies", "USD,,EUR"], "currencies must be 1 to 10 different names of 1 to 12 letters and digits"],
  [["--currencies", "USD,USD"], "For example, write USD,EUR."],
  [["--accounting", "cash"], "Allowed choices are spot, margin."],
  [["--edge", "-3"], "--edge must be a positive number"],
  [["--edge", "0.005"], "edge must be basis points from 0 to 1000 with at most two decimals, not 0.005"],
  [["--edge", "1001"], "edge must be basis points from 0 to 1000"],
  [["--funding", "8"], "--funding must be a duration with its unit"],
  [["--funding", "90s"], "the funding period must be a whole number of minutes"],
  [["--fault", "lose-fil@*"], "Did you mean lose-fill?"],
  [["--fault", "lose-fill@*:3"], "it must have the form KIND@INSTANCE"],
  [["--fault", "lose-fill@alpha-2"], "there is no instance alpha-2"],
  [["--fault", "lose-transfer@*"], "--transfers N"],
  [["--fault", "lose-fill@*", "--fault", "shift-fee@alpha-1"], "the books of alpha-1 already have a fault"],
])("runvault simulate %j is refused before anything is served", async (args, told) => {
  const { status, stdout, stderr } = await runInside([...small(), ...args]);
  expect(stderr.replaceAll(/\s+/g, " ")).toContain(told);
  expect([status, stdout]).toEqual([2, ""]);
});

test("the help says of every fault in the books what it does", async () => {
  const { stdout } = await runInside(["simulate", "--help"]);
  for (const { form, meaning } of bookFaultKinds) {
    expect(stdout).toContain(form);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain(meaning);
  }
});

describe.each([
  ["sound books", [], []],
  ["a fault in the books", ["--fault", "skip-state@*"], ["states"]],
] as const)("a world of several instruments and currencies with %s", (name, fault, broken) => {
  test("says the same over both transports, and is archived as complete", async () => {
    const books = ["--symbols", "3", "--currencies", "USD, EUR", "--accounting", "margin", "--edge", "2.5"];
    const moves = ["--transfers", "3", "--funding", "10m"];
    const running = startInside([...small(), "--rows", "3000", ...books, ...moves, ...fault]);
    const url = await running.firstLine();
    try {
      const run = { instanceId: "alpha-1", runId: "2022-01-01-001" };
      for (const open of [openRestGateway, openRpcGateway]) {
        await using gateway = open({ baseUrl: url });
        const identities = (await bookBreaks(gateway, run, "margin")).map(({ identity }) => identity);
        expect(identities).toEqual(broken);
      }
      const archive = ["--archive", join(folder, name.replaceAll(" ", "-"))];
      for (const transport of ["rest", "rpc"]) {
        const made = await runInside([
          ...["archive", "--all", "--finished", "--gateway", url, "--transport", transport],
          ...["--require", "counted", ...archive.slice(0, 1), `${archive[1]}-${transport}`],
        ]);
        expect(made).toMatchObject({ status: 0 });
      }
      const [rest, rpc] = ["rest", "rpc"].map((transport) => `${archive[1]}-${transport}`);
      expect(await runInside(["maintain", "diff", rest!, rpc!])).toMatchObject({ status: 0 });
      const { stdout } = await runInside([
        ...["query", "SELECT DISTINCT currency FROM equity ORDER BY 1", "--format", "csv"],
        ...["--archive", rest!],
      ]);
      expect(stdout).toBe("currency\nEUR\nUSD\n");
    } finally {
      running.signal("SIGTERM");
      expect(await running.finished).toMatchObject({ status: 0 });
    }
  });
});
