import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ForeignBench, profileOf } from "../fixtures/foreign/foreign-bench.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-open-run-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Requests for rows since the last call. */
function rowRequests({ gateway }: ForeignBench): URLSearchParams[] {
  const requests = gateway.requests.splice(0).map((path) => new URL(path, gateway.url));
  return requests.filter(({ pathname }) => pathname === "/api/tradeHistory").map((url) => url.searchParams);
}

test("pages by number of a run that goes on are asked for up to an instant that has passed", async () => {
  await using bench = await ForeignBench.open("borealis", { goesOn: true });
  const before = bench.truth("fills");
  expect(await bench.archive()).toMatchObject({ status: 0 });
  const proven = (await bench.table("fills"))?.proven;
  expect(proven).toMatchObject({ state: "OPEN", certificate: { proof: "exhausted" } });
  expect(await bench.lines("fills")).toEqual(before);
  expect(bench.truth("fills").length).toBeGreaterThan(before.length);
  const requests = rowRequests(bench);
  expect(requests.some((query) => query.get("pageNumber") === "2")).toBe(true);
  const ends = requests.map((query) => Number(query.get("toMs") ?? Number.NaN));
  expect(ends.filter((end) => !(end <= Date.now()))).toEqual([]);

  bench.gateway.endRun();
  expect(await bench.archive()).toMatchObject({ status: 0 });
  expect((await bench.table("fills"))?.state).toBe("COMPLETE");
  expect(await bench.lines("fills")).toEqual(bench.truth("fills"));
});

test("pages by number that no end of a window closes wait for the end of the run, by name", async () => {
  const profile = join(folder, "endless.yaml");
  const text = await readFile(profileOf("borealis"), "utf8");
  await writeFile(profile, text.replace(" to: toMs,", ""));
  await using bench = await ForeignBench.open("borealis", { goesOn: true });
  const planned = await bench.archive(profile, "--dry-run");
  expect(planned).toMatchObject({
    status: 4,
    stdout: expect.stringMatching(/the run has not ended, and its numbered pages/),
  });
  const refused = await bench.archive(profile);
  expect(refused).toMatchObject({ status: 4, stdout: expect.stringMatching(/--finished archives only/) });
  expect(rowRequests(bench)).toEqual([]);
  const failed = { outcome: "INCOMPLETE", error: { code: "incomplete" } };
  expect(await bench.table("fills")).toMatchObject({ state: "INCOMPLETE", proven: null, attempt: failed });

  bench.gateway.endRun();
  expect(await bench.archive(profile)).toMatchObject({ status: 0 });
  expect((await bench.table("fills"))?.state).toBe("COMPLETE");
  expect(await bench.lines("fills")).toEqual(bench.truth("fills"));
});
