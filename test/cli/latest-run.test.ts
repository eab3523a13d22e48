import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { latestAtSource } from "../../src/cli/list/latest-run.ts";
import type { Session } from "../../src/cli/process/session.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { wallClock } from "../../src/model/time.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-latest-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("INSTANCE/latest is the run that began last at the gateway, which never hears the word", async () => {
  const source = await openSimulator({ runs: 3, rows: 100, failed: 0, cacheDir: join(folder, "worlds") });
  const asked: unknown[] = [];
  const heard = new Proxy<HistorySource>(source, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        asked.push(args);
        return member.apply(target, args);
      };
    },
  });
  const notes: string[] = [];
  const session = {
    signal: new AbortController().signal,
    note: (text: string) => notes.push(text),
  } as unknown as Session;
  const first = { instanceId: "alpha-1", runId: "2022-01-01-001" };
  const runs = [first, { instanceId: "alpha-1", runId: "latest" }];
  const target = await latestAtSource({ kind: "runs", runs }, heard, wallClock, session);
  const listed = (await source.instances()).find(({ instanceId }) => instanceId === "alpha-1")!;
  const latest = listed.runIds.toSorted().at(-1)!;
  expect(target).toEqual({ kind: "runs", runs: [first, { instanceId: "alpha-1", runId: latest }] });
  expect(notes).toEqual([`alpha-1/latest is alpha-1/${latest}`]);
  expect(JSON.stringify(asked)).not.toContain("latest");
  const unknown = { kind: "runs", runs: [{ instanceId: "gamma", runId: "latest" }] } as const;
  await expect(latestAtSource(unknown, source, wallClock, session)).rejects.toMatchObject({
    code: "instance_not_found",
  });
});

test("commands that read an archive take it by the archive's runs, and print which run that is", async () => {
  const tables = { fills: { state: "COMPLETE", rows: 3 } } as const;
  const built = await buildArchive(["1", "2"].map((runId) => ({ instanceId: "alpha", runId, tables })));
  const of = (...words: string[]) => runInside([...words, "--archive", built.dir]);
  for (const words of [
    ["export", "--list", "fills", "--run"],
    ["export", "fills", "--out", join(folder, "f.csv"), "--run"],
  ]) {
    const { status, stderr } = await of(...words, "alpha/latest");
    expect([words, status, stderr]).toEqual([words, 0, "alpha/latest is alpha/2\n"]);
  }
  const { status, stderr } = await of("verify", "nowhere/latest");
  expect([status, stderr]).toEqual([2, expect.stringContaining('no runs of instance "nowhere"')]);
  await built.dispose();
});
