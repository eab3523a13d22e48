import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { start } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";

const ifFifo = it.skipIf(!requires("fifo"));

ifFifo("a job file that is a pipe is refused at once, whether somebody writes to it or not", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  try {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    expect(await start(["check", pipe]).finished).toEqual({
      status: 2,
      stdout: `${pipe}: the file is not a regular file\n  hint: Name a job file that this user can read.\n${pipe}: 1 error\n`,
      stderr: "",
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
