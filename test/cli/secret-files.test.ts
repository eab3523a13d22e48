import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tokenLine } from "../../src/serve/auth/token-list.ts";
import { runInside, startInside } from "../fixtures/command/command-inside.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-secret-files-"));
});
afterAll(() => rm(folder, { recursive: true }));

const small = () => ["simulate", "--rows", "500", "--runs", "1", "--cache", join(folder, "worlds")];

async function fileOf(content: string | Buffer, mode = 0o600): Promise<string> {
  const file = join(folder, `${mode.toString(8)}-${Buffer.from(content).toString("hex").slice(0, 80)}`);
  await writeFile(file, content);
  await chmod(file, mode);
  return file;
}

/** What a server that starts says on standard error. */
async function told(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const server = startInside([...small(), ...args], { env });
  await server.firstLine();
  server.signal("SIGTERM");
  return (await server.finished).stderr;
}

describe("a file with a token or key that others can read is warned of", () => {
  const keyed = Buffer.alloc(32, 7);
  test.each([
    [0o644, "every user can read this file; make it private with chmod 600"],
    [0o604, "every user"],
    [0o640, "a group of users"],
    [0o600, ""],
    [0o400, ""],
  ])("%o", async (mode, says) => {
    for (const [flag, content] of [
      ["--token-file", "a-token-of-this-test"],
      ["--page-key-file", keyed],
      ["--tokens", tokenLine("0123456789abcdef-own", "desk", ["*"])],
    ] as const) {
      const stderr = await told([flag, await fileOf(content, mode)]);
      if (says === "") expect(stderr).not.toContain("warn");
      else expect(stderr).toMatch(new RegExp(`warn: ${flag}: ${says}.* file=`));
    }
  });

  test("by archive as well", async () => {
    const file = await fileOf("a-token-of-archive", 0o644);
    const args = ["archive", "a/b", "--gateway", "http://127.0.0.1:9/api/v1", "--retries", "0"];
    const { stderr } = await runInside([...args, "--archive", join(folder, "none"), "--token-file", file]);
    expect(stderr).toContain("--token-file: every user can read this file");
  });
});

describe("the key of page tokens", () => {
  test.each([
    ["a text that is too short", "0123456789abcdef0123456789abcde\n", "the key has 31 bytes"],
    ["bytes that are too few", Buffer.alloc(31, 0xff), "the key has 31 bytes"],
    ["nothing", "", "the key has 0 bytes"],
  ])("is refused where it is %s", async (_, content, says) => {
    const { status, stderr } = await runInside([...small(), "--page-key-file", await fileOf(content)]);
    expect([status, stderr]).toEqual([2, expect.stringContaining(says)]);
    expect(stderr).toContain("head -c 32 /dev/urandom | base64");
  });

  test.each([
    ["is not there", "/nothing/page.key", "the file cannot be read"],
    ["never ends", "/dev/zero", "larger than any key or token"],
  ])("is refused where its file %s", async (_, file, says) => {
    const { status, stderr } = await runInside([...small(), "--page-key-file", file]);
    expect([status, stderr]).toEqual([2, expect.stringContaining(says)]);
  });

  test("comes from the environment too", async () => {
    const file = await fileOf("short");
    const { status, stderr } = await runInside(small(), { env: { RUNVAULT_PAGE_KEY_FILE: file } });
    expect([status, stderr]).toEqual([2, expect.stringContaining("the key has 5 bytes")]);
    expect(await told([], { RUNVAULT_PAGE_KEY_FILE: await fileOf("k".repeat(32)) })).not.toContain("warn");
  });
});
