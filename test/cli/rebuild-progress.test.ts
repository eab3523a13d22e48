import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { reportRebuild } from "../../src/cli/maintain/report-rebuild.ts";
import type { Progress } from "../../src/cli/output/progress.ts";
import type { Terminal } from "../../src/cli/output/terminal.ts";
import { openSession } from "../../src/cli/process/open-session.ts";
import { createScrubber } from "../../src/model/text/scrubber.ts";
import { ArchiveUnderTest, archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const second = { ...worldRun, runId: "2022-01-02" };

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(async () => {
  await under.renew();
  await archiveWorld(under.archive.dir, new ArraySource(second, smallWorld(4, second)));
});

/** Rebuilds all runs; gives what was printed and shown of the progress, in its order. */
async function rebuilt(): Promise<string[]> {
  const told: string[] = [];
  let rows = 0;
  const parts = { planned: 0, asked: 0, done: 0 };
  const progress: Progress = {
    expect: (all) => {
      told.push(`of ${all} rows`);
      rows = 0;
    },
    add: (count, bytes) => {
      expect(bytes).toBeGreaterThan(0);
      rows += count;
    },
    conversion: (change) => {
      parts[change] += 1;
    },
    on: () => {},
    ended: () => {},
    run: (what, number, of) => void told.push(`${what}, ${number} of ${of}`),
    [Symbol.dispose]: () => void told.push("shown no more"),
  };
  const terminal = { env: {}, hasColours: false, columns: null } as unknown as Terminal;
  const session = openSession({
    terminal,
    folders: { archive: under.archive.dir },
    globals: { json: false, jsonLines: false, quiet: false, verbose: false, debug: false, logFormat: "text" },
    scrubber: createScrubber(),
    signal: new AbortController().signal,
    write: (text) => void told.push(text),
  });
  const status = await reportRebuild(
    [],
    { archive: under.archive.dir },
    {
      ...session,
      progress: () => progress,
      print: async (text) => {
        if (rows > 0) told.push(`${rows} rows done`);
        // the last line of a run's progress says that all of its parts are there
        expect([parts.planned > 0, parts.done]).toEqual([true, parts.planned]);
        told.push(text.replace(/, [^,]*\n/, "\n"));
        return true;
      },
    },
  );
  expect(status).toBe(0);
  return told;
}

test("rebuild shows each run and how many of its rows are done, and tells of it when it is", async () => {
  const told = await rebuilt();
  const first = told.indexOf("alpha/2022-01-01, 1 of 2");
  const next = told.indexOf("alpha/2022-01-02, 2 of 2");
  expect([first, next > first]).toEqual([0, true]);
  for (const [from, name] of [
    [first, "alpha/2022-01-01"],
    [next, "alpha/2022-01-02"],
  ] as const) {
    const rows = /^of (\d+) rows$/.exec(told[from + 1]!)![1];
    expect(told[from + 2]).toBe(`${rows} rows done`);
    expect(told[from + 3]).toMatch(new RegExp(`^${name} {2}generation 2: ${rows} rows, `));
  }
  expect(told.at(-1)).toBe("shown no more");
});
