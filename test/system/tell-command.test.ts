import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { createScrubber } from "../../src/model/text/scrubber.ts";
import { messageSchema } from "../../src/pipeline/tell/message.ts";
import { runCommand } from "../../src/pipeline/tell/run-command.ts";
import { tellEnd } from "../../src/pipeline/tell/tell-end.ts";
import { endAt, endedJob, notifiersOf } from "../fixtures/tell/ended-job.ts";
import { answers, Receiver } from "../fixtures/tell/receiver.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tell-command-"));
});

/** What is to work has all the time that a busy machine takes; what is to be ended, enough to start a shell. */
const times = { attemptMs: 60_000, pauseMs: 10, wholeMs: 180_000 };
const short = 2_000;

/** Words of a shell that start a program which takes a long time, whatever is sent to it but SIGKILL. */
const stubborn = `'${process.execPath}' -e 'process.on("SIGTERM", () => {}); setTimeout(() => {}, 1e6)'`;

/** Tells a command, and gives its line, its attempts and what was logged. */
async function told(command: string[], attemptMs = 60_000) {
  const { notifiers, logged } = notifiersOf({ command }, { ...times, attemptMs });
  const end = await tellEnd(notifiers, endedJob());
  const [line] = end.told;
  return { line: line!, end, logged };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Waits until none of the processes in a file, one a line, is there any more. */
async function allGone(file: string): Promise<number[]> {
  const pids = (await readFile(file, "utf8")).trim().split("\n").map(Number);
  for (let tries = 0; tries < 200 && pids.some(alive); tries += 1) await sleep(20);
  expect(pids.filter(alive)).toEqual([]);
  return pids;
}

describe("a command", () => {
  test("gets the message on standard input, and its arguments as they are: there is no shell", async () => {
    const file = join(folder, "got.json");
    const command = [
      "node",
      "-e",
      "require('fs').writeFileSync(process.argv[1], require('fs').readFileSync(0)); console.log(process.argv.slice(2).join('|'))",
    ];
    const { line, logged, end } = await told([...command, file, "$HOME", "`id`", "a b", "*"]);
    expect(line).toMatchObject({ to: "command", result: "done", attempts: 1, error: null });
    expect(messageSchema.parse(JSON.parse(await readFile(file, "utf8")))).toMatchObject({ job: "nightly" });
    expect(logged).toEqual([
      { level: "info", to: "command", output: "$HOME|`id`|a b|*\n", text: "the command printed" },
    ]);
    expect(end.troubles.map((trouble) => trouble.told)).toEqual([endAt, endAt]);
  });

  test("that hangs is killed with all that it started, SIGTERM ignored or not, and tried three times", async () => {
    const file = join(folder, "hang.pids");
    const script = `trap '' TERM HUP INT; echo $$ >> ${file}; ${stubborn} & echo $! >> ${file}; (trap '' TERM; ${stubborn}) & echo $! >> ${file}; wait`;
    const { line } = await told(["sh", "-c", script], short);
    expect(line).toMatchObject({ result: "failed", attempts: 3, error: { code: "timeout", exit: 0 } });
    expect(line.error?.message).toBe("the command did not end within 2 s");
    expect(await allGone(file)).toHaveLength(9);
  });

  test("that leaves a process behind which holds its output has done its work, and is not run again", async () => {
    const file = join(folder, "left.pids");
    const { line, logged } = await told(["sh", "-c", `echo paged; ${stubborn} & echo $! >> ${file}; exit 0`]);
    expect(line).toMatchObject({ result: "done", attempts: 1 });
    expect(logged).toMatchObject([{ output: "paged\n" }]);
    for (const pid of (await readFile(file, "utf8")).trim().split("\n").map(Number))
      process.kill(pid, "SIGKILL");
  });

  test("that left its group is not waited for either", async () => {
    const file = join(folder, "away.pid");
    const script = `
      const away = [process.execPath, ["-e", "setTimeout(() => {}, 1e6)"], { detached: true, stdio: "inherit" }];
      fs.writeFileSync(process.argv[1], String(child_process.spawn(...away).pid));`;
    const stop = new AbortController();
    const end = runCommand(["node", "-e", script, file], "", stop.signal);
    const written = () => readFile(file, "utf8").catch(() => "");
    await expect.poll(written).not.toBe("");
    stop.abort(new RunvaultError("timeout", "it took too long"));
    expect(await end).toMatchObject({ error: { code: "timeout" } });
    process.kill(Number(await written()), "SIGKILL");
  });

  test("may write 100 MB: the log has the beginning of it", async () => {
    const { line, logged } = await told([
      "node",
      "-e",
      "process.stdout.write(Buffer.alloc(1e8, 'xxxxxxx\\n'))",
    ]);
    expect(line).toMatchObject({ result: "done", attempts: 1 });
    expect(logged).toHaveLength(1);
    const { output } = logged[0] as { output: string };
    expect(output).toMatch(/^(?:x{7}\n){511}x{7}… \(100000000 bytes\)\n$/);
  });

  test("need not read its input, however long that is", async () => {
    const long = "x".repeat(4_000_000);
    const signal = new AbortController().signal;
    const scripts = ["", "fs.closeSync(0); setTimeout(() => {}, 200)", "fs.readSync(0, Buffer.alloc(1))"];
    for (const script of scripts) {
      expect(await runCommand(["node", "-e", script], long, signal)).toEqual({ output: "", error: null });
    }
  });

  test.each([
    ["is not there", ["/nowhere/page"], 1, "the command was not found"],
    ["is not in PATH", ["no-such-program-5ecret"], 1, "the command was not found"],
    ["is a folder", ["/tmp"], 1, "the command may not be run"],
    ["has an argument that no program can get", ["sh", "-c", "a\0b"], 1, /^the command could not be started/],
    ["ends with another status", ["sh", "-c", "exit 3"], 3, "the command ended with status 3"],
    ["is ended by a signal", ["sh", "-c", "kill -9 $$"], 3, "the command was ended by SIGKILL"],
  ])("that %s is told of", async (_, command, attempts, message) => {
    const { line } = await told(command);
    expect(line).toMatchObject({
      result: "failed",
      attempts,
      error: { message: expect.stringMatching(message) },
    });
    expect(JSON.stringify(line)).not.toContain("5ecret");
  });

  test("that fails once is run again, and what it prints is without secrets", async () => {
    const file = join(folder, "once");
    const program = join(folder, "page");
    await writeFile(
      program,
      `#!/bin/sh\n[ -e ${file} ] && exit 0\n: > ${file}\necho "hook 5ecretHook9 refused" >&2\nexit 1\n`,
    );
    await chmod(program, 0o755);
    const { notifiers, logged } = notifiersOf({ command: [program] }, times, createScrubber());
    notifiers.scrubber.add("5ecretHook9");
    const { told: lines } = await tellEnd(notifiers, endedJob());
    expect(lines).toMatchObject([{ result: "done", attempts: 2 }]);
    expect(logged).toMatchObject([{ output: "hook *** refused\n" }]);
    expect(existsSync(file)).toBe(true);
  });

  test("that heard it makes a trouble told, although the webhook did not", async () => {
    await using receiver = await Receiver.open(answers(500));
    const { notifiers } = notifiersOf({ command: ["sh", "-c", ":"], webhook: receiver.url }, times);
    const { told: lines, troubles } = await tellEnd(notifiers, endedJob());
    expect(lines.map(({ to, result }) => [to, result])).toEqual([
      ["webhook", "failed"],
      ["command", "done"],
    ]);
    expect(troubles.map((trouble) => trouble.told)).toEqual([endAt, endAt]);
  });
});
