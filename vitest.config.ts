import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/fixtures/command/longest-first.ts";

const rooms = [
  ...["model", "row", "duckdb", "gateway", "simulator", "archive", "serve"],
  ...["extract", "analytics", "faults", "report", "pipeline", "cli"],
];

/**
 * Tests that start no process share the modules of their worker: importing src/ anew for each file, or for each room,
 * would take as long as the tests.
 */
const inside = {
  setupFiles: ["test/fixtures/command/no-processes.ts"],
  isolate: false,
  // V8 would collect its whole heap, which holds all of src/, for every few of the buffers that rows pass through
  execArgv: ["--external-memory-accounted-in-global-limit", "--initial-heap-size=400"],
};

/** Tests that start processes run what is built. */
const processes = {
  globalSetup: ["test/fixtures/command/built.ts"],
};

export default defineConfig({
  test: {
    // limits are for what hangs: ten times what the slowest chain of kills takes alone, so that no load reaches them
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    // two cores, and two more for those that wait
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    setupFiles: ["test/fixtures/trials/fixed-seed.ts"],
    globalSetup: ["test/fixtures/command/scratch.ts", "test/fixtures/command/requirement-count.ts"],
    tags: [{ name: "slow", description: "takes more than it should while one writes: not in test:fast" }],
    projects: [
      {
        extends: true,
        test: { name: "rooms", include: rooms.map((room) => `test/${room}/**/*.test.ts`), ...inside },
      },
      // what several rooms promise alike
      {
        extends: true,
        test: { name: "contract", include: ["test/contract/**/*.test.ts"], ...inside },
      },
      // processes and kills
      {
        extends: true,
        test: { name: "system", include: ["test/system/**/*.test.ts"], ...processes },
      },
      // what npm test leaves out: other programs, long chains, many cases of what npm test has some of
      {
        extends: true,
        test: {
          ...{ name: "all", include: ["test/all/**/*.test.ts"], ...processes },
          env: { RUNVAULT_CASES: "others" },
          execArgv: inside.execArgv,
        },
      },
    ],
  },
});
