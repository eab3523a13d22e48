import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeMixedArchive } from "../fixtures/archive/mixed-archive.ts";
import { capture } from "../fixtures/command/capture.ts";
import { requires } from "../fixtures/command/requirement.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rv-"));
  await makeMixedArchive(join(folder, "archive"));
});
afterAll(() => rm(folder, { recursive: true }));

/** What a command leaves on a terminal, but for what differs from machine to machine and from day to day. */
async function screen(columns: number, command: readonly string[], more: { colours?: boolean; env?: Record<string, string> } = {}) {
  const args = [...command, "--archive", join(folder, "archive")];
  const text = await capture({ columns, rows: 60, command: args, ...more });
  return text
    .replaceAll(folder, "/data")
    .replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, "IDENTITY")
    .replace(/made [^\n]*(\n +UTC)?/, "made TODAY")
    .replace(/[\d.]+ [MGT]B free/, "FREE free")
    // DuckDB's next version may pack otherwise
    .replaceAll(/\d+(?=\.\d kB| B\b)|(?<=\.)\d(?= kB)/g, (digits) => "9".repeat(digits.length))
    // how its colours are ended
    .replaceAll("\u001b", "^");
}

describe.skipIf(!requires("tmux"))("a terminal", () => {
  test("of 80 columns: runs", async () => {
    expect(await screen(80, ["runs"])).toMatchInlineSnapshot();
  });

  test("of 120 columns: runs", async () => {
    expect(await screen(120, ["runs"])).toMatchInlineSnapshot();
  });

  test("of 120 columns: runs --wide of one instance", async () => {
    expect(await screen(120, ["runs", "--wide", "--state", "COMPLETE"])).toMatchInlineSnapshot();
  });

  test("of 80 columns: info", async () => {
    expect(await screen(80, ["info"])).toMatchInlineSnapshot();
  });

  test("of 120 columns: info", async () => {
    expect(await screen(120, ["info"])).toMatchInlineSnapshot();
  });

  test("of 80 columns: verify", async () => {
    expect(await screen(80, ["verify"])).toMatchInlineSnapshot();
  });

  test("of 120 columns: rm --older-than", async () => {
    expect(await screen(120, ["rm", "--older-than", "90d", "--dry-run"])).toMatchInlineSnapshot();
  });

  test("with colours: states of runs, in info, and what verify found", async () => {
    expect(await screen(100, ["runs", "alpha"], { colours: true })).toMatchInlineSnapshot();
    const info = await screen(100, ["info"], { colours: true });
    expect(info.split("\n")[3]).toMatchInlineSnapshot();
    const verify = await screen(100, ["verify", "alpha"], { colours: true });
    expect(verify.split("\n").slice(0, 2)).toMatchInlineSnapshot();
  });

  test.each(["runs", "info", "verify"])("%s has none with NO_COLOR", async (command) => {
    const plain = await screen(100, [command]);
    expect(await screen(100, [command], { colours: true, env: { NO_COLOR: "1" } })).toBe(plain);
    expect(plain).not.toContain("^");
  });
});
