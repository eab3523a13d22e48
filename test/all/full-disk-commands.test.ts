import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Finished } from "../fixtures/command/command-process.ts";
import { DiskWorld, onSmallDisk, stepsInside } from "../fixtures/command/disk-world.ts";
import { requires } from "../fixtures/command/requirement.ts";

const world = new DiskWorld();

/** Every command that locks an archive, or writes in one; `job` names a job's file. */
const commandsOn = (dir: string, job: string): Record<string, readonly string[]> => ({
  archive: world.archiveInto(dir),
  "archive-again": [...world.archiveInto(dir), "--recheck", "0s"],
  run: ["run", job],
  rebuild: ["maintain", "rebuild", "--archive", dir],
  widen: ["maintain", "rebuild", "--widen", "fills.price", "--archive", dir],
  links: ["maintain", "rebuild", "--links", "--archive", dir],
  verify: ["verify", "--deep", "--archive", dir],
  repair: ["verify", "--repair", "--archive", dir],
  gc: ["gc", "--archive", dir],
  query: ["query", "SELECT count(*) FROM fills", "--archive", dir],
  metrics: ["metrics", "alpha/2022-01-01", "--archive", dir],
  runs: ["runs", "--archive", dir],
  info: ["status", "--archive", dir],
  rm: ["rm", "alpha/2022-01-01", "--archive", dir],
});

// DuckDB makes a lock's file in three writes of 4 kB: a lock that was cut off by a full disk ended every later command with 5
it.skipIf(!requires("tmpfs")).each([0, 4, 64])(
  "with %i kB of room left every command does its work or exits with 7, and does it once there is room",
  async (room) => {
    const disk = join(world.folder, `room-${room}`);
    const dir = join(disk, "archive");
    const sound = join(world.folder, `sound-${room}`);
    const job = join(world.folder, `job-${room}.yaml`);
    const [, , , url] = world.archiveInto(dir);
    await writeFile(
      job,
      `version: 1\nname: full-disk\ngateway: { url: "${url}" }\narchive: ${dir}\nrun: alpha/2022-01-01\n`,
    );
    const commands = commandsOn(dir, job);
    const steps = Object.entries(commands).flatMap(([name, args]) => [
      `rm -rf '${dir}'`,
      name === "archive" || name === "run"
        ? `mkdir '${dir}'; cp '${sound}/archive.json' '${dir}'`
        : `cp -a '${sound}' '${dir}'`,
      `head -c $(($(df --output=avail -B1 '${disk}' | tail -1) - ${room} * 1024)) /dev/zero > '${disk}/others'`,
      args,
      `rm '${disk}/others'`,
      args,
    ]);
    const file = join(world.folder, `steps-${room}.json`);
    await writeFile(file, JSON.stringify([[...world.archiveInto(sound)], ...steps]));
    const { stdout, stderr } = await onSmallDisk(disk, "64m", stepsInside(file));
    const [made, ...finished] = stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Finished);
    expect(made, stderr).toMatchObject({ status: 0 });
    expect(finished, stderr).toHaveLength(2 * Object.keys(commands).length);
    for (const [index, name] of Object.keys(commands).entries()) {
      const [full, then] = finished.slice(2 * index) as [Finished, Finished];
      expect([0, 7], `${name}: ${full.stderr}`).toContain(full.status);
      // what was removed with no room cannot be removed again
      const isRemoved = name === "rm" && full.status === 0;
      expect(then.status, `${name}, with room: ${then.stderr}`).toBe(isRemoved ? 2 : 0);
    }
  },
);
