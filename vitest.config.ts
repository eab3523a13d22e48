import { defineConfig } from "vitest/config";

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

export default defineConfig({
  test: {
    // limits are for what hangs: ten times what the slowest case takes alone
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // in CI the machine has other work: what fails once is tried once more, and is listed as such
    retry: process.env.CI === undefined ? 0 : 1,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    // two cores, and one more for those that wait
    maxWorkers: 3,
    globalSetup: ["test/fixtures/command/scratch.ts", "test/fixtures/command/requirement-count.ts"],
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
      // processes, kills, Python, and trials by the hundred
      {
        extends: true,
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          // ten times what the slowest chain of kills takes alone
          testTimeout: 240_000,
          hookTimeout: 240_000,
          globalSetup: ["test/fixtures/command/built.ts"],
        },
      },
    ],
  },
});
