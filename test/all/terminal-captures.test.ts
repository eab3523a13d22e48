import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { wrapLines } from "../../src/cli/output/wrap-lines.ts";
import { type Capture, capture, masked } from "../fixtures/command/capture.ts";
import { run, start } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-captures-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The address of a world that is always the same, with faults in what it answers. */
async function simulated(...faults: string[]): Promise<string> {
  const world = ["--seed", "7", "--runs", "3", "--rows", "3000", "--port", "0"];
  const where = ["--cache", join(folder, "worlds")];
  const gateway = start(["simulate", ...world, ...where, ...faults.flatMap((fault) => ["--fault", fault])]);
  onTestFinished(async () => {
    gateway.child.kill();
    await gateway.finished;
  });
  return await gateway.firstLine();
}

/** `archive` into a new archive, on a terminal. */
async function archiving(
  url: string,
  columns: number,
  command: readonly string[],
  more: Partial<Capture> = {},
) {
  const archive = join(await mkdtemp(join(folder, "a-")), "archive");
  const where = ["--gateway", url, "--archive", archive, "--settle", "0s"];
  const screen = await capture({ columns, rows: 30, command: ["archive", ...where, ...command], ...more });
  return { screen, shown: masked(screen), archive };
}

const finished = ["--all", "--finished"];
const narrow = 80;
const wide = 120;

describe.skipIf(!requires("tmux"))("archive on a terminal", () => {
  test.each([narrow, wide])("of %i columns says what a night brought, a line a run", async (columns) => {
    const { screen, shown, archive } = await archiving(await simulated(), columns, finished);
    expect(shown).toBe(
      [
        "alpha-1/2022-01-01-001  COMPLETE  2,780 rows, 1.0 MB in TIME",
        "alpha-1/2022-01-02-002  COMPLETE  2,707 rows, 975.9 kB in TIME",
        "alpha-1/2022-01-03-003  COMPLETE  1,729 rows, 636.3 kB in TIME",
        "3 runs: 3 fetched; 7,216 rows, 2.6 MB fetched in TIME",
      ].join("\n"),
    );
    expect(screen).not.toContain("░");
    expect((await run(["runs", "--archive", archive])).status).toBe(0);
  });

  test("shows a bar that stands still when rows do, below what is told already", async () => {
    for (const [columns, expected] of [
      [narrow, /^[█░]{10} run 2 of 3 alpha-\S*…\S*-002: 100 of 413 rows, RATE, TIME left$/],
      [wide, /^[█░]{20} run 2 of 3 alpha-1\/2022-01-02-002: 100 of 413 rows, 52\.7 kB, RATE, TIME left$/],
    ] as const) {
      const { archive } = await archiving(await simulated(), columns, [
        "alpha-1/2022-01-01-001",
        ...["--tables", "orders"],
      ]);
      const stalled = [
        "--gateway",
        await simulated("stall@orders:100"),
        "--source-moved",
        "--parallel-runs",
        "1",
      ];
      const command = ["archive", ...stalled, "--archive", archive, ...finished, "--tables", "orders"];
      const screen = await capture({ columns, rows: 8, command, until: / 100 of 413 rows.* left/ });
      const [told, bar, ...rest] = masked(screen).split("\n");
      expect(told).toBe("alpha-1/2022-01-01-001  COMPLETE  up to date");
      expect(bar).toMatch(expected);
      expect(rest).toEqual([]);
      expect(screen.split("\n").every((line) => line.length < columns)).toBe(true);
    }
  });

  const unproven = (columns: number, colour: (state: string) => string) => [
    `alpha-1/2022-01-01-001  ${colour("INCOMPLETE")}  generation 1`,
    "  3,401 rows fetched, some of them again, 1.5 MB in TIME (RATE)",
    "  table   state       rows  gateway  proof",
    "  ------  ----------  ----  -------  -------",
    `  fills   ${colour("INCOMPLETE")}   209      212  none`,
    `  orders  ${colour("COMPLETE  ")}   451      451  counted`,
    wrapLines(
      "  fills: 3 rows missing in [2022-01-01T00:12:00.083965832Z, 2022-01-01T04:59:00.057784948Z): got 209 of 212; nothing proven is shown",
      columns,
    ),
    // which stays one line to copy
    ...wrappedAt(
      columns,
      "  hint for fills: Run the same command again; if it happens again, ask the gateway's operator which is right.",
    ),
  ];

  test.each([narrow, wide])("of %i columns tells why a table is not proven, in colours", async (columns) => {
    const url = await simulated("facts-disagree@fills:3");
    const command = ["alpha-1/2022-01-01-001", "--tables", "fills,orders"];
    const coloured = await archiving(url, columns, command, { colours: true });
    const colours: Record<string, number> = { INCOMPLETE: 31, COMPLETE: 32 };
    const colour = (state: string) => `\u001b[${colours[state.trim()]}m${state}\u001b[39m`;
    expect(coloured.shown).toBe(unproven(columns, colour).join("\n"));
    const env = { NO_COLOR: "1" };
    const plain = await archiving(url, columns, command, { colours: true, env });
    expect(plain.shown).toBe(unproven(columns, (state) => state).join("\n"));
  });

  test.each([narrow, wide])("of %i columns plans, with what all runs come to", async (columns) => {
    const url = await simulated();
    expect((await archiving(url, columns, [...finished, "--dry-run"])).shown).toBe(
      [
        "alpha-1/2022-01-01-001  status FINISHED  2,780 rows in 8 slices, about 223.6 kB",
        "alpha-1/2022-01-02-002  status FINISHED  2,707 rows in 8 slices, about 215.6 kB",
        "alpha-1/2022-01-03-003  status FAILED    1,729 rows in 8 slices, about 140.8 kB",
        "",
        "3 runs: 3 to fetch; 7,216 rows in 24 slices, 2.9 MB of text",
        "about 579.9 kB of disk needed, SPACE free; nothing was fetched",
      ].join("\n"),
    );
    const named = ["alpha-1/2022-01-01-001", "--tables", "fills,orders", "--dry-run"];
    expect((await archiving(url, columns, named)).shown).toBe(
      [
        "alpha-1/2022-01-01-001  status FINISHED",
        "  table   slices  rows      text     disk",
        "  ------  ------  ----  --------  -------",
        "  fills        1   209   99.7 kB  19.9 kB",
        "  orders       1   451  272.9 kB  54.6 kB",
        "",
        "1 run: 1 to fetch; 660 rows in 2 slices, 372.5 kB of text",
        "about 74.5 kB of disk needed, SPACE free; nothing was fetched",
      ].join("\n"),
    );
  });
});

/** A line as a terminal breaks it; blanks at the ends are not seen. */
function wrappedAt(columns: number, line: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < line.length; at += columns) parts.push(line.slice(at, at + columns).trimEnd());
  return parts;
}
