import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command, DiskWorld, onSmallDisk, runProgram } from "../fixtures/command/disk-world.ts";
import { builtMain } from "../fixtures/command/project.ts";
import { expectText } from "../fixtures/command/refusal.ts";
import { requires, unprivilegedUser } from "../fixtures/command/requirement.ts";

// test/all/bad-input-disk.test.ts has other disks and folders
const world = new DiskWorld();

describe.skipIf(!requires("tmpfs"))("a disk that is full", () => {
  it.each([["while segments are written", "1500k"]])(
    "%s exits with 7, and with room the same command finishes and verifies",
    async (name, size) => {
      const disk = join(world.folder, name.replaceAll(" ", "-"));
      const dir = join(disk, "archive");
      const script = [
        command(world.archiveInto(dir)),
        'echo "first $?"',
        `ls -R '${dir}/runs' 2>&1 | grep -c json`,
        `mount -o remount,size=64m '${disk}'`,
        `${command(world.archiveInto(dir))} && ${command(["verify", "--deep", "--archive", dir])}`,
        'echo "second $?"',
      ].join("\n");
      const { stdout, stderr } = await onSmallDisk(disk, size, script);
      expectText(
        { status: 7, stdout, stderr },
        { status: 7, code: "storage_full", says: ["Free some space"] },
      );
      // no manifest after the failure: nothing half-written is ever committed
      expect(stdout).toContain("first 7\n0\n");
      expect(stdout).toContain("second 0\n");
      expect(stdout).toMatch(/fills +COMPLETE +2,000/);
      expect(stdout).toContain("verified");
    },
  );
});

describe.skipIf(!requires("unprivileged"))("a folder without permission", () => {
  const asNobody = (args: readonly string[]) =>
    runProgram(process.execPath, [builtMain, ...args], unprivilegedUser);

  it("exits with 7 where the archive cannot be made", async () => {
    const closed = join(world.folder, "closed");
    await mkdir(closed, { mode: 0o555 });
    const finished = await asNobody(world.archiveInto(join(closed, "archive")));
    expectText(finished, {
      status: 7,
      code: "storage_forbidden",
      says: [closed, "Give this user access"],
    });
    expect(await readdir(closed)).toEqual([]);
  });
});
