import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { start } from "../fixtures/command/command-process.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a/b", runId: "12", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
});
afterAll(() => built.dispose());

const here = () => ["--archive", built.dir];
const endless = "SELECT md5(i::VARCHAR) AS h FROM range(1000000000000) r(i)";

describe("runvault query", () => {
  it("reads the statement from standard input", async () => {
    const { child, finished } = start(["query", ...here(), "-f", "csv", "-"]);
    child.stdin.end("SELECT count(*) AS n FROM fills WHERE instance_id = 'a/b';\n");
    const { status, stdout } = await finished;
    expect([status, stdout]).toEqual([0, "n\n3\n"]);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("stops at the first %s while it waits for standard input", async (signal, expected) => {
    const { child, finished, seen } = start(["query", ...here(), "-v", "-"]);
    // more than fits on the way: taken once the process reads, which then waits for the rest
    await new Promise((taken) => child.stdin.write(" ".repeat(2 ** 20 - 1), taken));
    child.kill(signal);
    await seen("Stopping");
    expect((await finished).status).toBe(expected);
  });

  it("ends quietly when its reader leaves", async () => {
    const { child, finished } = start(["query", ...here(), "-f", "csv", endless]);
    child.stdout.once("data", () => child.stdout.destroy());
    expect(await finished).toMatchObject({ status: 0, stderr: "" });
  });

  it.each([
    ["SIGINT", 130, "Stopping (press Ctrl-C again to stop at once)."],
    ["SIGTERM", 143, "Stopping on SIGTERM (another signal stops at once)."],
  ] as const)("stops at %s with status %i and says how to go on", async (signal, expected, said) => {
    const { child, finished, seen } = start(["query", ...here(), "-f", "csv", endless]);
    await seen("h\n");
    child.kill(signal);
    const { status, stderr } = await finished;
    expect(status).toBe(expected);
    expect(stderr).toContain(`${said} Run the same command again.`);
  });
});

describe("runvault simulate", () => {
  it("stops at the first signal while it renders, and leaves nothing half made", async () => {
    const dir = await mkdtemp(join(tmpdir(), "runvault-test-"));
    try {
      const { child, finished, seen } = start(["simulate", "--rows", "100000000", "--cache", dir]);
      await seen("rendering alpha-1/");
      child.kill("SIGINT");
      const { status, stdout, stderr } = await finished;
      expect({ status, stdout }).toEqual({ status: 130, stdout: "" });
      expect(stderr).toMatch(/rendering alpha-1\/\S+: [\d,]+ of [\d,]+ rows/);
      expect(await readdir(dir)).toEqual([]);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
