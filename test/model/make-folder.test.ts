import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { makeFolder } from "../../src/model/make-folder.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-make-folder-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let umask: number;
beforeEach(() => {
  umask = process.umask(0o022);
});
afterEach(() => void process.umask(umask));

const bits = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

describe("a folder that is made", () => {
  it.each([0o000, 0o022, 0o077, 0o277])("has the permissions asked for under umask %o", async (mask) => {
    const path = join(folder, `under-${mask}`, "below");
    await mkdir(join(folder, `under-${mask}`));
    process.umask(mask);
    await makeFolder(path, 0o750);
    expect(await bits(path)).toBe("750");
  });

  it("leaves those above it, and one that is there, as they are", async () => {
    await makeFolder(join(folder, "a/b/c"), 0o700);
    expect([await bits(join(folder, "a/b")), await bits(join(folder, "a/b/c"))]).toEqual(["755", "700"]);
    await chmod(join(folder, "a"), 0o705);
    await makeFolder(join(folder, "a"), 0o700);
    expect(await bits(join(folder, "a"))).toBe("705");
  });

  it("may be made by several at once", async () => {
    const path = join(folder, "many/at/once");
    await Promise.all(Array.from({ length: 20 }, () => makeFolder(path, 0o700)));
    expect(await bits(path)).toBe("700");
  });

  it("may be behind a link", async () => {
    await mkdir(join(folder, "real"));
    await symlink(join(folder, "real"), join(folder, "link"));
    await makeFolder(join(folder, "link/below"));
    expect((await stat(join(folder, "real/below"))).isDirectory()).toBe(true);
  });
});

describe("a folder that cannot be made", () => {
  // where new folders are answered with ENOENT, Node's own recursive mkdir tries for ever
  it.each(["/proc/x", "/proc/x/y/z", "/proc/self/x"])(
    "as %s ends with an error of the disk",
    async (path) => {
      await expect(makeFolder(path)).rejects.toMatchObject({ exit: 7, message: expect.stringMatching(/./) });
    },
  );

  it.each([
    ["file", "below a file"],
    ["file/deeper/still", "below a file"],
    ["dangling", "at a link that leads nowhere"],
    [`${"n".repeat(300)}`, "with a name that is too long"],
    ["loop/x", "behind a link to itself"],
  ])("is wrong usage: %s, %s", async (name) => {
    await writeFile(join(folder, "file"), "");
    for (const [link, target] of [
      ["dangling", "nowhere"],
      ["loop", "loop"],
    ] as const) {
      await rm(join(folder, link), { force: true });
      await symlink(join(folder, target), join(folder, link));
    }
    await expect(makeFolder(join(folder, name))).rejects.toMatchObject({ code: "invalid_argument" });
  });
});
