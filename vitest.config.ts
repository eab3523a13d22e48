import { defineConfig } from "vitest/config";

/** A project a room of `src/`; `contract`: what several rooms promise alike; `system`: processes, kills, Python. */
const rooms = ["model", "gateway", "simulator", "archive", "serve", "extract", "analytics", "cli"];
const projects = [...rooms, "contract", "system"];

export default defineConfig({
  test: {
    // limits are for what hangs: ten times what the slowest case takes alone
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // two cores: each test file that starts servers and DuckDB takes one
    maxWorkers: 2,
    globalSetup: ["test/fixtures/command/scratch.ts", "test/fixtures/command/requirement-count.ts"],
    projects: projects.map((name) => ({
      extends: true,
      test: {
        name,
        include: [`test/${name}/**/*.test.ts`],
        globalSetup: name === "system" ? ["test/fixtures/command/built.ts"] : [],
      },
    })),
  },
});
