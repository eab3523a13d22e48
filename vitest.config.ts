import { defineConfig } from "vitest/config";

/** A project a room of `src/`; `contract`: what several rooms promise alike; `system`: processes, kills, Python. */
const rooms = [
  "model",
  "gateway",
  "simulator",
  "archive",
  "serve",
  "extract",
  "analytics",
  "cli",
  "contract",
];

export default defineConfig({
  test: {
    // limits are for what hangs: ten times what the slowest case takes alone
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    // two cores: each test file that starts servers and DuckDB takes one
    maxWorkers: 2,
    globalSetup: ["test/fixtures/command/scratch.ts", "test/fixtures/command/requirement-count.ts"],
    projects: [
      ...rooms.map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`test/${name}/**/*.test.ts`],
          setupFiles: ["test/fixtures/command/no-processes.ts"],
          // importing src/ anew for each file would take as long as the tests
          isolate: false,
          // V8 would collect its whole heap, which holds all of src/, for every few of the buffers that rows pass through
          execArgv: ["--external-memory-accounted-in-global-limit", "--initial-heap-size=400"],
        },
      })),
      {
        extends: true,
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          globalSetup: ["test/fixtures/command/built.ts"],
        },
      },
    ],
  },
});
