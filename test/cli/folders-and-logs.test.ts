import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLineFile } from "../../src/cli/options/serve-options.ts";
import { LogFile } from "../../src/cli/process/log-file.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let folder: string;
let gateway: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-folders-"));
  const source = new ArraySource(worldRun, smallWorld());
  gateway = await serve({ source, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await gateway.close();
  await rm(folder, { recursive: true, force: true });
});

const bitsOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

// Node's recursive mkdir tries for ever where a file system answers ENOENT, as /proc does
test.each([
  ["archive", "alpha/2022-01-01", "--archive", "/proc/x"],
  ["archive", "alpha/2022-01-01", "--archive", "/proc/x/y"],
  ["archive", "alpha/2022-01-01", "--scratch", "/proc/x"],
])("%s %s %s %s ends with exit status 7 and names the folder", async (...args) => {
  const archive = args.includes("--archive") ? [] : ["--archive", join(folder, "scratched")];
  const { status, stdout, stderr } = await runInside([...args, ...archive, "--gateway", gateway.url]);
  expect(status).toBe(7);
  expect(stdout + stderr).toContain("/proc/x");
});

test("simulate --cache /proc/x ends with exit status 7 and names the folder", async () => {
  const { status, stderr } = await runInside(["simulate", "--port", "0", "--cache", "/proc/x"]);
  expect({ status, stderr }).toMatchObject({ status: 7, stderr: expect.stringContaining("/proc/x") });
});

test("export --out below /proc ends with an error", async () => {
  const dir = join(folder, "archive");
  await runInside(["archive", "alpha/2022-01-01", "--archive", dir, "--gateway", gateway.url]);
  const out = ["export", "fills", "--format", "csv", "--out", "/proc/x/y.csv", "--archive", dir];
  expect(await runInside(out)).toMatchObject({ status: 7, stderr: expect.stringContaining("/proc/x") });
});

test("logs and the simulator's cache are their owner's alone, whatever the umask", async () => {
  const umask = process.umask(0o000);
  try {
    const [log, audit, cacheDir] = ["access.log", "audit.log", "cache/deep"].map((name) =>
      join(folder, name),
    );
    await using access = await LogFile.open(log!, { onError: () => {} });
    access.write("one");
    await using lines = await openLineFile(audit!);
    lines.write("one");
    await using simulator = await openSimulator({ seed: "private", runs: 1, rows: 50, cacheDir: cacheDir! });
    expect(await simulator.instances()).toHaveLength(1);
    expect([await bitsOf(log!), await bitsOf(audit!), await bitsOf(cacheDir!)]).toEqual([
      "600",
      "600",
      "700",
    ]);
    for (const entry of await readdir(cacheDir!, { recursive: true, withFileTypes: true })) {
      const bits = await bitsOf(join(entry.parentPath, entry.name));
      expect(bits).toBe(entry.isDirectory() ? "700" : "600");
    }
  } finally {
    process.umask(umask);
  }
});
