import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { type Running, start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const busyThread = pathToFileURL(inProject("test/fixtures/command/busy-thread.ts")).href;
/** Above the second within which signals count as the first one. */
const later = 1_100;

/** A command whose native thread is inside a system call until it is released, and that listens to signals. */
async function startBusy(args: readonly string[]): Promise<Running & { release(): Promise<void> }> {
  const fifo = join(folder, `fifo-${Math.random()}`);
  execFileSync("mkfifo", [fifo]);
  const env = { NODE_OPTIONS: `--import ${busyThread}`, UV_THREADPOOL_SIZE: "1", TEST_FIFO: fifo };
  const running = start(args, env);
  await running.seen("listening");
  const release = async () => {
    const writer = await open(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    await writer.close();
  };
  return { ...running, release };
}

const here = () => ["--archive", built.dir];
const commands: readonly (readonly [string, () => string[]])[] = [
  [
    "archive",
    () => ["archive", "--gateway", "http://127.0.0.1:9/api/v1", "--archive", join(folder, "new"), "a/1"],
  ],
  ["query", () => ["query", ...here(), "SELECT count(*) FROM fills"]],
  ["export", () => ["export", "fills", ...here(), "--out", join(folder, "fills.csv"), "--format", "csv"]],
  ["verify", () => ["verify", "--deep", ...here()]],
  ["diff", () => ["maintain", "diff", built.dir, built.dir]],
  ["rebuild", () => ["maintain", "rebuild", ...here()]],
  ["simulate", () => ["simulate", "--rows", "1000000", "--cache", join(folder, "worlds")]],
  ["serve", () => ["serve", ...here(), "--port", "0"]],
];

/** Its first signal is told to people, and the same signal or another comes right behind it. */
async function signalTwiceAtOnce({ child, seen }: Running, first: NodeJS.Signals, second: NodeJS.Signals) {
  child.kill(first);
  await seen("Stopping");
  child.kill(second);
}

describe.each(commands)("runvault %s while a native thread heeds nothing", (name, args) => {
  it("takes two signals within a second for one, and stops in order by the first", async () => {
    const running = await startBusy(args());
    await signalTwiceAtOnce(running, "SIGTERM", "SIGINT");
    // still there: what is under way may end
    await sleep(100);
    expect(running.child.signalCode).toBeNull();
    await running.release();
    const { status, stderr } = await running.finished;
    expect(stderr).toContain("Stopping on SIGTERM (another signal stops at once). ");
    // being stopped is how a server ends its work
    if (name === "serve") expect(status).toBe(0);
    else {
      expect(stderr).toContain("runvault: interrupted: stopped by SIGTERM");
      expect(status).toBe(143);
    }
  });

  it("is gone at the next signal after that second", async () => {
    const running = await startBusy(args());
    await signalTwiceAtOnce(running, "SIGINT", "SIGTERM");
    await sleep(later);
    expect(running.child.signalCode).toBeNull();
    running.child.kill("SIGTERM");
    const { stderr } = await running.finished;
    expect(running.child.signalCode).toBe("SIGTERM");
    expect(stderr).toContain("Stopping (press Ctrl-C again to stop at once). ");
  });
});

it("a process on its way out is gone at the next signal", async () => {
  const env = { NODE_OPTIONS: `--import ${busyThread}`, TEST_LEAVE_SLOWLY: "yes" };
  const running = start(["simulate", "--rows", "100000000", "--cache", join(folder, "worlds")], env);
  await running.seen("rendering alpha-1/");
  running.child.kill("SIGINT");
  await running.seen("leaving");
  running.child.kill("SIGINT");
  await running.finished;
  expect(running.child.signalCode).toBe("SIGINT");
});
