import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/requirement-count.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // two cores: each test file that starts servers and DuckDB takes one
    maxWorkers: 2,
  },
});
