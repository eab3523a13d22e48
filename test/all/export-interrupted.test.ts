import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { builtMain as main } from "../fixtures/command/project.ts";
import { mountNamespace, requires, unprivilegedUser } from "../fixtures/command/requirement.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 60_000 } } },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-export-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const args = (...more: string[]) => ["export", "--archive", built.dir, ...more];

describe("an export that does not come to its end", () => {
  test.each([
    ["ndjson", "export-piece-written:3"],
    ["arrow", "export-piece-written:3"],
    ["parquet", "export-written"],
    ["duckdb", "export-written"],
  ])("killed, as %s: nothing stands under the name, and the next one is whole", async (format, step) => {
    const into = join(folder, `killed-${format}`);
    const out = join(into, "out");
    const killed = start(args("fills", "-f", format, "-o", out), { RUNVAULT_KILL_AT: step });
    await killed.finished;
    expect(killed.child.signalCode).toBe("SIGKILL");
    expect((await readdir(into)).filter((name) => !name.startsWith("."))).toEqual([]);
    expect((await runInside(args("fills", "-f", format, "-o", out))).status).toBe(0);
    expect((await stat(out)).size).toBeGreaterThan(10_000);
  });

  test("whose reader leaves ends quietly", async () => {
    for (const format of ["csv", "ndjson", "arrow-stream"]) {
      const child = spawn(process.execPath, [main, ...args("fills", "-f", format, "-o", "-")]);
      let stderr = "";
      child.stderr.on("data", (chunk) => {
        stderr += chunk;
      });
      await once(child.stdout, "data");
      child.stdout.destroy();
      const [status] = (await once(child, "close")) as [number | null];
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
  });

  test.skipIf(!requires("unprivileged"))("without permission says so", async () => {
    const child = spawn(process.execPath, [main, ...args("fills", "-f", "csv", "-o", "/runvault-no/x.csv")], {
      ...unprivilegedUser,
      env: { PATH: process.env.PATH, TMPDIR: "/tmp" },
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const [status] = (await once(child, "close")) as [number | null];
    expect(stderr).toContain("storage_forbidden");
    expect(status).toBe(7);
  });

  test.skipIf(!requires("tmpfs"))("for want of room says so, and leaves nothing", async () => {
    for (const format of ["csv", "arrow", "parquet", "duckdb"]) {
      const command = args("fills", "-f", format, "-o", "/mnt/out")
        .map((arg) => `'${arg}'`)
        .join(" ");
      const script = `mount -t tmpfs -o size=200k tmpfs /mnt && { '${process.execPath}' '${main}' ${command}; echo "status $?"; ls -A /mnt; }`;
      const [program = "", ...rest] = [...mountNamespace, "sh", "-c", script];
      const child = spawn(program, rest);
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (chunk) => {
        stdout += chunk;
      });
      child.stderr.on("data", (chunk) => {
        stderr += chunk;
      });
      await once(child, "close");
      expect({ format, stdout, stderr }).toEqual({
        format,
        stdout: "status 7\n",
        stderr: expect.stringContaining("storage_full"),
      });
      expect(stderr).toContain("--out");
    }
  });
});
