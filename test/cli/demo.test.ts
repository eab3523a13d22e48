import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";

test("a folder that has something in it is not written to", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-demo-test-"));
  try {
    await writeFile(join(folder, "mine.txt"), "");
    const { status, stdout, stderr } = await runInside(["demo", "--keep", folder]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain("--keep names a folder that is not empty");
    expect(await readdir(folder)).toEqual(["mine.txt"]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
