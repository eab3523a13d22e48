import { mkdir, readFile, rename, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ArchiveUnderTest } from "../fixtures/archive/archived-world.ts";
import { treeOf } from "../fixtures/archive/folder-tree.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create(["fills"]);
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

const command = (...args: string[]) => runInside([...args, "--archive", under.archive.dir]);

test("verify tells of a link and of foreign files, with all runs and with the one that is named", async () => {
  const { dir } = under.archive;
  await rename(join(dir, "data"), join(under.folder, "outside"));
  await symlink(join(under.folder, "outside"), join(dir, "data"));
  await writeFile(join(dir, "tables", "fills", "alpha", "2022-01-01", "mine.parquet"), "mine");
  await writeFile(join(dir, "notes.txt"), "mine");
  const all = await command("verify");
  expect(all).toMatchObject({ status: 5, stderr: "" });
  const [head, ...lines] = all.stdout.split("\n");
  expect(head).toBe("folders of the archive  DAMAGED");
  expect(lines.slice(0, 3)).toEqual([
    "  damaged: places: this is a symbolic link, not a folder. Replace the link with what it points to, or remove it. To keep a folder on another disk, mount it in the link's place (mount --bind); for pending/ and staging/ use --scratch; a whole archive may be there, with a link to its root. (data)",
    "  unproven: foreign: 1 Parquet file in tables/ that the archive did not make: a glob over the table also reads these rows; move them out of tables/ (tables/fills/alpha/2022-01-01/mine.parquet)",
    "  notice: foreign: 1 path that the archive did not make and leaves alone (notes.txt)",
  ]);
  // what is behind the link is nobody's word for the run
  expect(lines[3]).toMatch(/^alpha\/2022-01-01 {2}DAMAGED: \d+ of \d+ checks failed$/);
  await unlink(join(dir, "data"));
  await rename(join(under.folder, "outside"), join(dir, "data"));
  const one = await command("verify", "alpha/2022-01-01", "--json");
  expect(one.status).toBe(4);
  const report = JSON.parse(one.stdout);
  expect(report).toMatchObject({ exit: 4, runs: [{ exit: 0 }] });
  expect(report.places).toMatchObject({ damaged: false, unproven: true, exit: 4 });
  expect(report.places.checks.map(({ check, level }: Record<string, string>) => `${check} ${level}`)).toEqual(
    ["places ok", "foreign unproven"],
  );
});

test("rm says what it leaves", async () => {
  const note = join(under.archive.layout.dataDir(under.manifest), "notes.txt");
  await writeFile(note, "mine");
  expect(await command("rm", "alpha/2022-01-01")).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^removed alpha\/2022-01-01 {2}[\d.]+ kB\n$/),
    stderr: `kept ${note}: the archive did not make it\n`,
  });
  expect(await readFile(note, "utf8")).toBe("mine");
});

test.each(["maintain rebuild", "maintain rebuild --widen fills.price"])(
  "%s writes nothing through a link in the place of jobs/, and tells the remedy",
  async (words) => {
    const outside = join(under.folder, `jobs of ${words}`);
    await mkdir(outside);
    const link = join(under.archive.dir, "jobs");
    await symlink(outside, link);
    const before = await treeOf(under.archive.dir);
    const { status, stderr } = await command(...words.split(" "));
    expect(status).toBe(5);
    expect(stderr).toContain(`archive_damaged: this is a symbolic link, not a folder\n  at: file ${link}\n`);
    expect(stderr).toContain("  hint: Replace the link with what it points to, or remove it.");
    expect(await treeOf(outside)).toEqual(new Map());
    expect(await treeOf(under.archive.dir)).toEqual(before);
    await unlink(link);
    expect((await command(...words.split(" "))).status).toBe(0);
  },
);
