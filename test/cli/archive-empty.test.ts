import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { serve } from "../../src/serve/server.ts";
import { hours, run, world } from "../fixtures/archive/table-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

test("archive --empty takes the operator's word for tables, given one by one or as a list, and keeps it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-empty-"));
  const source = new ArraySource(run, world({ fills: hours(3), factors: [], events: [] }), { literal: true });
  const server = await serve({ source, host: "127.0.0.1", port: 0 });
  try {
    const archive = async (dir: string, ...more: string[]) => {
      const named = ["archive", `${run.instanceId}/${run.runId}`, "--tables", "fills,factors,events"];
      const where = ["--gateway", server.url, "--transport", "rest", "--archive", join(folder, dir)];
      return await runInside([...named, ...where, ...more]);
    };
    const first = await archive("one");
    expect(first.status).toBe(4);
    expect(first.stdout).toContain(
      "\n  hint for factors: If the table should have no rows, run again with --empty factors;",
    );
    // the state says it: no code repeats it
    expect(first.stdout).toMatch(
      /^ +factors +UNVERIFIED .* the gateway returns no rows, but nothing proves that there are none/m,
    );
    const { stdout: listed } = await runInside(["runs", "--archive", join(folder, "one")]);
    expect(listed).toContain(
      "factors: UNVERIFIED: the gateway returns no rows, but nothing proves that there are none",
    );
    expect(first.stdout + listed).not.toContain("unverified:");
    expect((await archive("one", "--empty", "factors")).status).toBe(4);
    // the word for factors is kept
    expect((await archive("one", "--empty", "events")).status).toBe(0);
    expect((await archive("two", "--empty", "factors", "--empty", "events")).status).toBe(0);
    expect((await archive("three", "--empty", "factors,events")).status).toBe(0);
    const { status, stderr } = await archive("three", "--empty", "factor");
    expect({ status, stderr }).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("did you mean factors"),
    });
  } finally {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
});
