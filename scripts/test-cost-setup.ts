// Runs in each of vitest's workers before a file's tests: notes the processor time that the file and each of its tests
// take, children that have ended included.
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach } from "vitest";

/** The unit in which Linux counts the time of children. */
const msPerTick = 10;

/** Processor milliseconds of this process and of its children that have ended. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  // the name of the program, which may have blanks, stands in parentheses
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)!.split(" ");
  return (user + system) / 1000 + (Number(fields[13]) + Number(fields[14])) * msPerTick;
}

const fileBegan = processorMs();
let testBegan = 0;

beforeEach(() => {
  testBegan = processorMs();
});

afterEach(({ task }) => {
  Object.assign(task.meta, { processorMs: processorMs() - testBegan });
});

// the first to be registered runs last
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern for the fixtures that a hook wants
afterAll(({}, suite) => {
  Object.assign(suite.meta, { processorMs: processorMs() - fileBegan });
});
