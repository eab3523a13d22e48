import { EventEmitter } from "node:events";
import { mkdtemp, readFile, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LogFile, type LogFileOptions } from "../../src/cli/process/log-file.ts";
import type { RunvaultError } from "../../src/model/error.ts";
import { requires } from "../fixtures/command/requirement.ts";

let folder: string;
let file: string;
let told: RunvaultError[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-log-file-"));
  file = join(folder, "log");
  told = [];
});
afterEach(() => rm(folder, { recursive: true }));

async function opened(options: Partial<LogFileOptions> = {}): Promise<LogFile> {
  return await LogFile.open(file, { onError: (error) => told.push(error), ...options });
}

/** Gives the file's name to what is at another path. */
async function become(target: string): Promise<void> {
  await symlink(target, join(folder, "new"));
  await rename(join(folder, "new"), file);
}

test("lines are appended in their order, whenever they come", async () => {
  await writeFile(file, "before\n");
  const lines = Array.from({ length: 200 }, (_, i) => `line ${i}`);
  {
    await using log = await opened();
    for (const line of lines.slice(0, 100)) log.write(line);
    for (const line of lines.slice(100)) {
      await null;
      log.write(line);
    }
  }
  expect((await readFile(file, "utf8")).split("\n")).toEqual(["before", ...lines, ""]);
  expect(told).toEqual([]);
});

test("what cannot be opened is an error", async () => {
  file = join(folder, "nothing", "log");
  await expect(opened()).rejects.toMatchObject({ place: { file } });
});

test("a file that was renamed keeps what was written before SIGHUP, and the name gets what comes after", async () => {
  const signals = new EventEmitter();
  {
    await using log = await opened();
    using _ = log.reopenOn(signals);
    const lines = Array.from({ length: 100 }, (_, i) => `line ${i}`);
    for (const line of lines) log.write(line);
    await rename(file, `${file}.1`);
    signals.emit("SIGHUP");
    // as logrotate does, which compresses the former file only then
    await expect.poll(() => readFile(file, "utf8").catch(() => null)).not.toBeNull();
    const before = await readFile(`${file}.1`, "utf8");
    log.write("after");
    await expect.poll(() => readFile(file, "utf8")).toMatch(/after\n$/);
    expect(await readFile(`${file}.1`, "utf8")).toBe(before);
    expect(before + (await readFile(file, "utf8"))).toBe(`${lines.join("\n")}\nafter\n`);
  }
  expect([told, signals.listenerCount("SIGHUP")]).toEqual([[], 0]);
});

test("a file that is emptied in its place goes on from its beginning", async () => {
  await using log = await opened();
  log.write("before");
  await expect.poll(() => readFile(file, "utf8")).toBe("before\n");
  await truncate(file);
  log.write("after");
  await expect.poll(() => readFile(file, "utf8")).toBe("after\n");
});

describe.skipIf(!requires("full-device"))("on a full disk", () => {
  test("lines wait until there is room again", async () => {
    await become("/dev/full");
    await using log = await opened();
    log.write("first");
    await expect.poll(() => told).toHaveLength(1);
    log.write("second");
    await become(join(folder, "roomy"));
    const text = () => readFile(join(folder, "roomy"), "utf8").catch(() => "");
    await expect.poll(text).toBe("first\nsecond\n");
    log.write("third");
    await expect.poll(text).toBe("first\nsecond\nthird\n");
    expect(told).toMatchObject([{ code: "storage_full", place: { file }, cause: { code: "ENOSPC" } }]);
  });

  test("lines beyond what may wait are lost, and counted once the others are written", async () => {
    await become("/dev/full");
    {
      await using log = await opened({ mostWaitingBytes: 10 });
      for (const line of ["one", "two", "three", "four"]) log.write(line);
      await expect.poll(() => told).toHaveLength(1);
      await become(join(folder, "roomy"));
    }
    expect(await readFile(join(folder, "roomy"), "utf8")).toBe("one\ntwo\n");
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the file cannot be written/),
      expect.stringMatching(/^2 lines are lost/),
    ]);
  });

  test("lines that still wait at the end are counted as lost", async () => {
    await become("/dev/full");
    {
      await using log = await opened();
      for (const line of ["one", "two", "three"]) log.write(line);
    }
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the file cannot be written/),
      expect.stringMatching(/^3 lines are lost/),
    ]);
  });
});
