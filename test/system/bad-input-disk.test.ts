import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, chown, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Served, serve } from "../../src/serve/server.ts";
import { worldRun } from "../fixtures/archive/archived-world.ts";
import type { Finished } from "../fixtures/command/command-process.ts";
import { builtMain as main } from "../fixtures/command/project.ts";
import { expectText } from "../fixtures/command/refusal.ts";
import { mountNamespace, requires, unprivilegedUser } from "../fixtures/command/requirement.ts";
import { type ArrayRow, ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

const start = 1_640_995_200_000_000_001n;
const rowCount = 2000;

/** Fills whose ids do not compress: they need far more room than the estimate for usual rows says. */
function bulkyFills(): ArrayRow[] {
  const times = Array.from({ length: rowCount }, (_, i) => start + BigInt(i));
  return rowsAt(worldRun, "fills", times).map((row) => ({
    ...row,
    line: row.line
      .replace(/"trade_id-\d+"/, () => `"${randomBytes(1000).toString("base64")}"`)
      .replace(/"client_order_id-\d+"/, '"client_order_id-0"'),
  }));
}

let folder: string;
let served: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-bad-disk-"));
  await chmod(folder, 0o755);
  const orders = rowsAt(worldRun, "orders", [start]);
  const source = new ArraySource(
    worldRun,
    new Map([
      ["fills", bulkyFills()],
      ["orders", orders],
    ]),
  );
  served = await serve({ source, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await served.close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a program, with nothing of this process's RUNVAULT_ environment. */
function runProgram(program: string, args: readonly string[], user: object = {}): Promise<Finished> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("RUNVAULT_")),
  );
  const child = spawn(program, args, { ...user, env, cwd: "/" });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  return new Promise((done, failed) => {
    child.on("error", failed);
    child.on("close", (status) => done({ status, stdout, stderr }));
  });
}

const archiveInto = (dir: string) => [
  "archive",
  "alpha/2022-01-01",
  "--gateway",
  served.url,
  "--archive",
  dir,
];
const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(" ");
const command = (args: readonly string[]) => quoted([process.execPath, main, ...args]);

/** Runs shell text where `disk` is a small disk of its own that nobody else sees. */
async function onSmallDisk(disk: string, size: string, script: string): Promise<Finished> {
  await mkdir(disk, { recursive: true });
  const [program = "", ...args] = mountNamespace;
  const mount = `mount -t tmpfs -o size=${size} tmpfs '${disk}' || exit 99`;
  return await runProgram(program, [...args, "sh", "-c", `${mount}\n${script}`]);
}

describe.skipIf(!requires("tmpfs"))("a disk that is full", () => {
  it("is found by the estimate before anything is fetched, with exit status 7", async () => {
    const disk = join(folder, "small");
    const finished = await onSmallDisk(disk, "96k", `exec ${command(archiveInto(join(disk, "archive")))}`);
    expectText(finished, { status: 7, code: "storage_full", says: [disk, "free", "nothing was fetched"] });
  });

  it("is found by the plan as well, which exits with 7", async () => {
    const disk = join(folder, "plan");
    const args = [...archiveInto(join(disk, "archive")), "--dry-run"];
    const finished = await onSmallDisk(disk, "96k", `exec ${command(args)}`);
    expectText(finished, { status: 7, code: "storage_full", says: ["the plan needs", disk] });
  });

  it.each([
    ["while segments are written", "1500k"],
    ["while Parquet is written", "3600k"],
  ])("%s exits with 7, and with room the same command finishes and verifies", async (name, size) => {
    const disk = join(folder, name.replaceAll(" ", "-"));
    const dir = join(disk, "archive");
    const script = [
      command(archiveInto(dir)),
      'echo "first $?"',
      `ls -R '${dir}/runs' 2>&1 | grep -c json`,
      `mount -o remount,size=64m '${disk}'`,
      `${command(archiveInto(dir))} && ${command(["verify", "--deep", "--archive", dir])}`,
      'echo "second $?"',
    ].join("\n");
    const { stdout, stderr } = await onSmallDisk(disk, size, script);
    expectText({ status: 7, stdout, stderr }, { status: 7, code: "storage_full", says: ["Free some space"] });
    // no manifest after the failure: nothing half-written is ever committed
    expect(stdout).toContain("first 7\n0\n");
    expect(stdout).toContain("second 0\n");
    expect(stdout).toMatch(/fills +COMPLETE +2,000/);
    expect(stdout).toContain("verified");
  });

  it("is left with its reserve, looked at on the way, for rows that take more than was estimated", async () => {
    const disk = join(folder, "reserve");
    const dir = join(disk, "archive");
    // a hundredth of the disk is more than what one segment takes
    const small = `${command([...archiveInto(dir), "--segment-bytes", "20000"])}`;
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
    const disk = join(folder, "read-only");
    const script = `mount -o remount,ro '${disk}'\nexec ${command(archiveInto(join(disk, "archive")))}`;
    const finished = await onSmallDisk(disk, "64m", script);
    expectText(finished, { status: 7, code: "storage_read_only", says: [disk, "Remount"] });
  });
});

describe.skipIf(!requires("tmpfs"))("a folder of the archive on a disk of its own", () => {
  /** Shell text that archives, and then moves a folder of the archive to the disk and mounts it in its place. */
  const moved = (dir: string, name: string, disk: string) =>
    [
      command(archiveInto(dir)),
      `mkdir -p '${dir}/${name}'`,
      `cp -a '${dir}/${name}/.' '${disk}'`,
      `mount --bind '${disk}' '${dir}/${name}'`,
    ].join(" && ");

  it.each(["data", "pending", "tables", "runs"])("works as %s/, by way of a mount", async (name) => {
    const [dir, disk] = [join(folder, `mounted-${name}`), join(folder, `disk-of-${name}`)];
    const work = [
      moved(dir, name, disk),
      command(["rebuild", "--archive", dir]),
      command(["verify", "--deep", "--archive", dir]),
    ];
    const { status, stdout, stderr } = await onSmallDisk(disk, "64m", work.join(" && "));
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).toContain("verified");
  });

  it("stops a change of types as tables/, with the remedy, and lets it finish without", async () => {
    const [dir, disk] = [join(folder, "mounted-widened"), join(folder, "disk-of-tables-widened")];
    const widen = command(["rebuild", "--widen", "fills.price", "--archive", dir]);
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
    runProgram(process.execPath, [main, ...args], unprivilegedUser);

  it("exits with 7 where the archive cannot be made", async () => {
    const closed = join(folder, "closed");
    await mkdir(closed, { mode: 0o555 });
    const finished = await asNobody(archiveInto(join(closed, "archive")));
    expectText(finished, {
      status: 7,
      code: "storage_forbidden",
      says: [closed, "Give this user access"],
    });
    expect(await readdir(closed)).toEqual([]);
  });

  it("exits with 7 where the archive is another's, which it leaves as it is", async () => {
    const dir = join(folder, "others");
    // a folder that is made by an archive is for its owner alone
    await mkdir(dir, { mode: 0o755 });
    expect((await runProgram(process.execPath, [main, ...archiveInto(dir)])).status).toBe(0);
    await chmodAll(dir, 0o555);
    const refused = await asNobody(archiveInto(dir));
    expectText(refused, { status: 7, code: "storage_forbidden", says: [dir, "Give this user access"] });
    // whoever may only read can still read
    const query = await asNobody(["query", "-f", "csv", "SELECT count(*) AS n FROM fills", "--archive", dir]);
    expect(query).toMatchObject({ status: 0, stdout: `n\n${rowCount}\n` });
    await chmodAll(dir, 0o755);
  });

  it("exits with 7 where a folder may not even be read", async () => {
    const dir = join(folder, "hidden");
    await mkdir(dir, { mode: 0o700 });
    if (unprivilegedUser.uid === undefined) await chmod(dir, 0o000);
    else await chown(dir, 0, 0);
    await writeFile(join(folder, "note"), "");
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
