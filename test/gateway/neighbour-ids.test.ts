import { expect, test } from "vitest";
import { impossibleRuns } from "../../src/gateway/rest/filter-probe.ts";
import { neighbourProbes } from "../../src/gateway/rest/neighbour-ids.ts";
import { pageRows } from "../../src/gateway/rest/pages/page-rows.ts";

test.each([
  ["letters of another case", "run-a", "RUN-A", ["Run-a", "run-A"], "run-b"],
  ["a name that contains it", "run-1", "my-run-1", ["run-", "un-1"], "x"],
  ["a pattern of SQL", "run_1", "run-1", ["run__", "run_?", "run_."], "x"],
  ["numbers that are equal", "07", "7", ["007", "0007"], "8"],
])("%s: what only a coarse comparison finds is asked for", (_, id, other, probes, far) => {
  expect(neighbourProbes(id, [id, far])).toEqual([]);
  const found = neighbourProbes(id, [id, other]);
  expect(found.length).toBeGreaterThan(0);
  for (const probe of found) expect([id, other]).not.toContain(probe);
  for (const probe of probes.filter((one) => one !== other)) expect(found).toContain(probe);
});

test("a number below all that are listed may be a run that the list has no room for", () => {
  expect(neighbourProbes("12", ["12", "123"])).toEqual([]);
  expect(neighbourProbes("12", ["12", "123", "1"])).toEqual(["2"]);
});

test("a run is asked for by its ends as well", () => {
  const request = { path: "/x", parameters: { run: "run", instance: undefined, filters: {}, fixed: {} } };
  const run = { instanceId: "alpha", runId: "run-1a" };
  const traits = { namesRun: false, namesInstance: true };
  const runs = impossibleRuns(request as never, traits, run, { instances: [], runs: ["run"] }, {});
  const asked = new Map(runs.map(({ runId, isImpossible }) => [runId, isImpossible]));
  expect([asked.get("run"), asked.get("-1a")]).toEqual([false, true]);
  expect([...asked.keys()].some((id) => id.endsWith("-run-1a"))).toBe(true);
});

test("a byte order mark is no row", () => {
  for (const chunks of [
    [[0xef, 0xbb, 0xbf]],
    [[0xef], [0xbb, 0xbf]],
    [[0xef, 0xbb, 0xbf, 0x7b, 0x7d, 0x0a]],
  ]) {
    const rows = pageRows({ form: "lines", mediaTypes: [] }, [], {});
    const out = chunks.map((bytes) => Buffer.from(rows.push(Uint8Array.from(bytes))).toString());
    expect([out.join(""), rows.end().length]).toEqual([chunks[0]!.length > 3 ? "{}\n" : "", 0]);
  }
});
