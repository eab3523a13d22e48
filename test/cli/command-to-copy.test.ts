import { describe, expect, test } from "vitest";
import { commandsToCopy } from "../../src/cli/output/command-to-copy.ts";
import type { Terminal } from "../../src/cli/output/terminal.ts";

function commandIn(folders: { archive: string; scratch?: string }, env: Terminal["env"] = {}) {
  return commandsToCopy(folders, { terminal: { env } as Terminal })("archive", "alpha/1");
}

describe("a command to copy", () => {
  test("names no folder that it would work in without being told", () => {
    expect(commandIn({ archive: "archive" })).toBe("runvault archive alpha/1");
    const env = { RUNVAULT_ARCHIVE: "/data", RUNVAULT_SCRATCH: "/fast" };
    expect(commandIn({ archive: "/data", scratch: "/fast" }, env)).toBe("runvault archive alpha/1");
    expect(commandIn({ archive: "archive" }, { RUNVAULT_ARCHIVE: "" })).toBe("runvault archive alpha/1");
  });

  test("repeats folders given by flags, in words that a shell reads back", () => {
    expect(commandIn({ archive: "/mnt/my copy", scratch: "it's" })).toBe(
      "runvault archive --archive '/mnt/my copy' --scratch 'it'\\''s' alpha/1",
    );
    const env = { RUNVAULT_ARCHIVE: "/data", RUNVAULT_SCRATCH: "/fast" };
    // the default as well, where the environment names another
    expect(commandIn({ archive: "archive", scratch: "/slow" }, env)).toBe(
      "runvault archive --archive archive --scratch /slow alpha/1",
    );
  });
});
