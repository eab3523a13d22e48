import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRegularFile } from "../../src/archive/storage/archive-file.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-file-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test("what is no file, or too large a one, is not opened", async () => {
  const [file, folder, link, socket] = ["file", "folder", "link", "socket"].map((name) => join(dir, name));
  await writeFile(file!, "text");
  await mkdir(folder!);
  await symlink(file!, link!);
  await using server = createServer();
  await new Promise<void>((resolve) => server.listen(socket!, resolve));
  // FIFOs, which a process makes, are in test/system/hostile-files.test.ts
  for (const other of [folder!, link!, socket!, "/dev/zero"]) {
    await expect(openRegularFile(other, 100), other).rejects.toMatchObject({ code: "archive_damaged" });
  }
  await expect(openRegularFile(file!, 3)).rejects.toMatchObject({ code: "archive_damaged" });
  const { handle, size } = await openRegularFile(file!, 4);
  await handle.close();
  expect(size).toBe(4);
});
