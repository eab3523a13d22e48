import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { metricsSchema } from "../../src/analytics/metrics/metrics-document.ts";
import type { ReconcileReport } from "../../src/analytics/reconcile/reconcile-report.ts";
import { formatRun } from "../../src/model/run-argument.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type DegenerateArchive, degenerateArchive } from "../fixtures/degenerate/degenerate-archive.ts";
import { bars, equity, fill, textAt, transfer } from "../fixtures/degenerate/degenerate-rows.ts";
import { textOf } from "../fixtures/degenerate/page-text.ts";

const prices = Array.from({ length: 72 }, () => 50);

/** A run whose books balance, with a deposit that names what `of` says in place of its account's own. */
const archiveWith = (of: Record<string, string>) =>
  degenerateArchive({
    name: "a stray deposit",
    rows: {
      events: [transfer(0, 100), transfer(30, 7, { ...of, seq: 9 })],
      equity: equity([100, 100, 100]),
      fills: [fill(2.5, "BUY", 50), fill(4.5, "SELL", 50)],
      bars: bars(prices),
    },
  });

async function asked(archive: DegenerateArchive, command: string, ...more: string[]) {
  const args = command === "query" ? more : [formatRun(archive.ref), ...more];
  return await runInside([command, "--archive", archive.dir, ...args]);
}

const strays = [
  ["no currency", { currency: "" }, "account main, portfolio core and no currency"],
  [
    "an account that nothing else knows",
    { account: "ghost" },
    "account ghost, portfolio core and currency USD",
  ],
] as const;

/** The verdicts of the first checks, and the reasons of all; the run has no orders, so that the sixth breaks. */
async function checked(archive: DegenerateArchive) {
  const { stdout, stderr } = await asked(archive, "reconcile", "--json");
  expect(stderr).toBe("");
  const { checks } = (JSON.parse(stdout) as ReconcileReport).runs[0]!;
  return {
    verdicts: checks.slice(0, 5).map(({ verdict }) => verdict),
    reasons: checks.map(({ reason }) => reason),
  };
}

describe.each(strays)("a deposit with %s", (_, of, named) => {
  let archive: DegenerateArchive;
  beforeAll(async () => {
    archive = await archiveWith(of);
  });
  afterAll(() => archive[Symbol.asyncDispose]());

  test("stops the sections of returns alone, which say where it is and who can mend it", async () => {
    const { status, stdout, stderr } = await asked(archive, "metrics", "--json", "--window", "2");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const { sections } = metricsSchema.parse(JSON.parse(stdout)).runs[0]!;
    const absent = (is: boolean) => sections.filter(({ absent }) => (absent !== null) === is);
    expect(absent(true).map(({ name }) => name)).toEqual(["performance", "drawdowns", "monthly", "rolling"]);
    for (const { absent: reason } of absent(true)) {
      expect(reason).toMatch(
        new RegExp(
          `^the event with seq 9, account.deposit, is of ${named}, which no equity row has \\(table events, `,
        ),
      );
      expect(reason).toContain(textAt(30));
      expect(reason).toContain("only the gateway can say");
    }
    expect(absent(false).map(({ name }) => name)).toContain("trades");
  });

  test("is named by a query in the same words, and not in DuckDB's", async () => {
    const { status, stderr } = await asked(
      archive,
      ...(["query", "FROM performance('alpha-1', '2022-01-01-001')"] as const),
    );
    expect(status).toBe(2);
    expect(stderr).toContain(`the event with seq 9, account.deposit, is of ${named}`);
    expect(stderr).not.toMatch(/Invalid Input|unclear/);
  });

  test("is a line of the page's sections of returns", async () => {
    const out = join(archive.folder, "page.html");
    const { status, stderr } = await asked(archive, "report", "--no-reconcile", "--out", out);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const page = textOf(await readFile(out, "utf8"));
    expect(page).toContain("The event with seq 9");
    expect(page).not.toContain("No equity rows");
    expect(page).toMatch(/Trades 1\b/);
  });

  test("leaves its money unchecked in reconcile", async () => {
    const { verdicts, reasons } = await checked(archive);
    expect(verdicts).toEqual(["HOLDS", "NOT CHECKED", "NOT CHECKED", "NOT CHECKED", "HOLDS"]);
    for (const reason of reasons.slice(1, 4)) {
      expect(reason).toMatch(
        /1 event moves money of account .*, which no equity point has, the first with seq 9 at /,
      );
    }
  });
});

describe("reconcile", () => {
  test("takes a deposit on an account for its only portfolio's, as metrics do", async () => {
    await using archive = await degenerateArchive({
      name: "a deposit on the account",
      rows: {
        events: [transfer(0, 100, { portfolio: "" })],
        equity: equity([100, 100, 100]),
        fills: [fill(2.5, "BUY", 50), fill(4.5, "SELL", 50)],
        bars: bars(prices),
      },
    });
    expect((await checked(archive)).verdicts).toEqual(Array(5).fill("HOLDS"));
    const { status, stdout } = await asked(archive, "metrics", "--json");
    expect(status).toBe(0);
    expect(stdout).not.toContain("no equity row has");
  });
});
