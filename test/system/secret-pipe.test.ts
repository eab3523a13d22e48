import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { start } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";

const ifFifo = it.skipIf(!requires("fifo"));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A command that reads its token from a pipe; nothing listens at its gateway. */
function reading(name: string) {
  const pipe = join(folder, name);
  execFileSync("mkfifo", [pipe]);
  const gateway = ["--gateway", "http://127.0.0.1:9/api/v1", "--retries", "0"];
  return { pipe, ...start(["runs", ...gateway, "--token-file", pipe, "-v"]) };
}

ifFifo("a token may come through a pipe, late", async () => {
  const { pipe, finished } = reading("late");
  await writeFile(pipe, "a-token-of-ours\n");
  const { status, stderr } = await finished;
  expect({ status, stderr }).toMatchObject({
    status: 3,
    stderr: expect.stringContaining("nothing is listening there"),
  });
  expect(stderr).not.toContain("a-token-of-ours");
});

ifFifo("a pipe that nobody writes to keeps no command from stopping at the first signal", async () => {
  const { child, finished, seen, pipe } = reading("silent");
  // a pipe can be opened like this once somebody reads it
  const writer = await vi.waitUntil(
    () => open(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null),
    {
      timeout: 60_000,
    },
  );
  await writer?.close();
  child.kill("SIGTERM");
  await seen("Stopping on SIGTERM");
  expect((await finished).status).toBe(143);
});
