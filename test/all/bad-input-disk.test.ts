import { chmod, chown, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command, DiskWorld, onSmallDisk, rowCount, runProgram } from "../fixtures/command/disk-world.ts";
import { builtMain } from "../fixtures/command/project.ts";
import { expectText } from "../fixtures/command/refusal.ts";
import { requires, unprivilegedUser } from "../fixtures/command/requirement.ts";

// test/system/bad-input-disk.test.ts has the rest
const world = new DiskWorld();

describe.skipIf(!requires("tmpfs"))("a disk that is full", () => {
  it("is found by the estimate before anything is fetched, with exit status 7", async () => {
    const disk = join(world.folder, "small");
    const finished = await onSmallDisk(
      disk,
      "96k",
      `exec ${command(world.archiveInto(join(disk, "archive")))}`,
    );
    expectText(finished, { status: 7, code: "storage_full", says: [disk, "free", "Nothing was fetched"] });
  });

  it("is found by the plan as well, which exits with 7", async () => {
    const disk = join(world.folder, "plan");
    const args = [...world.archiveInto(join(disk, "archive")), "--dry-run"];
    const finished = await onSmallDisk(disk, "96k", `exec ${command(args)}`);
    expectText(finished, { status: 7, code: "storage_full", says: ["the plan needs", disk] });
  });

  it.each([["while Parquet is written", "3600k"]])(
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

  it("is left with its reserve, looked at on the way, for rows that take more than was estimated", async () => {
    const disk = join(world.folder, "reserve");
    const dir = join(disk, "archive");
    // a hundredth of the disk is more than what one segment takes
    const small = `${command([...world.archiveInto(dir), "--segment-bytes", "20000"])}`;
    const script = [
      `head -c 64800000 /dev/zero > '${disk}/others'`,
      small,
      'echo "first $?"',
      `df --output=avail -B1 '${disk}' | tail -1 | sed 's/^/left /'`,
      `rm '${disk}/others'`,
      `${small} && ${command(["verify", "--deep", "--archive", dir])}`,
      'echo "second $?"',
    ].join("\n");
    const { stdout, stderr } = await onSmallDisk(disk, "64m", script);
    expectText({ status: 7, stdout, stderr }, { status: 7, code: "storage_full", says: ["stay free", dir] });
    expect(stderr).not.toContain("ENOSPC");
    expect(stdout).toContain("first 7\n");
    const left = Number(/left +(\d+)/.exec(stdout)?.[1]);
    expect(left).toBeGreaterThan(500_000);
    expect(left).toBeLessThan(800_000);
    expect(stdout).toContain("second 0\n");
    expect(stdout).toContain("verified");
  });

  it("that is read-only exits with 7", async () => {
    const disk = join(world.folder, "read-only");
    const script = `mount -o remount,ro '${disk}'\nexec ${command(world.archiveInto(join(disk, "archive")))}`;
    const finished = await onSmallDisk(disk, "64m", script);
    expectText(finished, { status: 7, code: "storage_read_only", says: [disk, "Remount"] });
  });
});

describe.skipIf(!requires("tmpfs"))("a folder of the archive on a disk of its own", () => {
  /** Shell text that archives, and then moves a folder of the archive to the disk and mounts it in its place. */
  const moved = (dir: string, name: string, disk: string) =>
    [
      command(world.archiveInto(dir)),
      `mkdir -p '${dir}/${name}'`,
      `cp -a '${dir}/${name}/.' '${disk}'`,
      `mount --bind '${disk}' '${dir}/${name}'`,
    ].join(" && ");

  it.each(["data", "pending", "tables", "runs"])("works as %s/, by way of a mount", async (name) => {
    const [dir, disk] = [join(world.folder, `mounted-${name}`), join(world.folder, `disk-of-${name}`)];
    const work = [
      moved(dir, name, disk),
      command(["maintain", "rebuild", "--archive", dir]),
      command(["verify", "--deep", "--archive", dir]),
    ];
    const { status, stdout, stderr } = await onSmallDisk(disk, "64m", work.join(" && "));
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).toContain("verified");
  });

  it("stops a change of types as tables/, with the remedy, and lets it finish without", async () => {
    const [dir, disk] = [join(world.folder, "mounted-widened"), join(world.folder, "disk-of-tables-widened")];
    const widen = command(["maintain", "rebuild", "--widen", "fills.price", "--archive", dir]);
    const script = [
      moved(dir, "tables", disk),
      widen,
      'echo "first $?"',
      `umount '${dir}/tables'`,
      `${widen} && ${command(["verify", "--archive", dir])}`,
      'echo "second $?"',
    ].join("\n");
    const { stdout, stderr } = await onSmallDisk(disk, "64m", script);
    expect(stdout).toContain("first 7\n");
    expect(`${stdout}${stderr}`).toContain("this folder is on another disk than staging/");
    expect(stdout).toContain("second 0\n");
  });
});

describe.skipIf(!requires("unprivileged"))("a folder without permission", () => {
  const asNobody = (args: readonly string[]) =>
    runProgram(process.execPath, [builtMain, ...args], unprivilegedUser);

  it("exits with 7 where the archive is another's, which it leaves as it is", async () => {
    const dir = join(world.folder, "others");
    // a folder that is made by an archive is for its owner alone
    await mkdir(dir, { mode: 0o755 });
    expect((await runProgram(process.execPath, [builtMain, ...world.archiveInto(dir)])).status).toBe(0);
    await chmodAll(dir, 0o555);
    const refused = await asNobody(world.archiveInto(dir));
    expectText(refused, { status: 7, code: "storage_forbidden", says: [dir, "Give this user access"] });
    // whoever may only read can still read
    const query = await asNobody(["query", "-f", "csv", "SELECT count(*) AS n FROM fills", "--archive", dir]);
    expect(query).toMatchObject({ status: 0, stdout: `n\n${rowCount}\n` });
    await chmodAll(dir, 0o755);
  });

  it("exits with 7 where a folder may not even be read", async () => {
    const dir = join(world.folder, "hidden");
    await mkdir(dir, { mode: 0o700 });
    if (unprivilegedUser.uid === undefined) await chmod(dir, 0o000);
    else await chown(dir, 0, 0);
    await writeFile(join(world.folder, "note"), "");
    const finished = await asNobody(["query", "SELECT 1", "--archive", dir]);
    await chmod(dir, 0o700);
    expectText(finished, { status: 7, code: "storage_forbidden", says: [dir] });
  });
});

async function chmodAll(dir: string, mode: number): Promise<void> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await chmod(join(entry.parentPath, entry.name), mode);
  await chmod(dir, mode);
}
