import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, Option } from "commander";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { checkedValues } from "../../src/cli/options/option-values.ts";
import { clockFrom } from "../../src/cli/options/simulated-clock.ts";
import { reportFailure } from "../../src/cli/process/failure.ts";
import { createLog } from "../../src/cli/process/log.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { formatRun, parseRun } from "../../src/model/run-argument.ts";
import { createScrubber } from "../../src/model/text/scrubber.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(() => rm(dir, { recursive: true }));

describe("usage errors exit with 2 and say what to do", () => {
  const cases: [string, string[], string][] = [
    ["an unknown command", ["archiv"], "Did you mean archive?"],
    ["an unknown command below another", ["maintain", "acept"], "Did you mean accept?"],
    [
      "one below a command that does something itself",
      ["serve", "tokn"],
      "Did you mean `runvault serve token`?",
    ],
    ["a former name", ["--quiet", "files", "fills", "a/1"], "Run `runvault export --list fills --run a/1`."],
    ["a former name without a table", ["files"], "Run `runvault export --list --all-tables`."],
    ["help for a former name", ["help", "info"], "Run `runvault status`."],
    ["a former name with a flag", ["notify", "my job.yaml", "--test"], "check 'my job.yaml' --test-notify`"],
    ["a command that only has others below it", ["maintain"], "rebuild"],
    ["an unknown flag", ["query", "--arhive", "x", "SELECT 1"], "Did you mean --archive?"],
    ["a missing argument", ["maintain", "diff", "a"], "missing required argument 'b'"],
    ["too many arguments", ["query", "SELECT 1", "x"], "too many arguments"],
    [
      "a wrong choice",
      ["query", "-f", "xml", "SELECT 1"],
      "Allowed choices are table, vertical, json, ndjson, csv",
    ],
    ["flags that exclude each other", ["query", "-v", "-q", "SELECT 1"], "cannot be used with option"],
    [
      "a duration without unit",
      ["query", "--timeout", "5", "SELECT 1"],
      "--timeout must be a duration with its unit",
    ],
    ["an unknown table", ["export", "--list", "fils"], "Did you mean fills?"],
    [
      "an empty value",
      ["runs", "--gateway", "http://x", "--token-file", ""],
      "--token-file must not be empty",
    ],
    [
      "two formats at once",
      ["query", "--json", "-f", "csv", "SELECT 1"],
      "cannot be used with option '--json'",
    ],
    ["an unknown table in a list", ["archive", "a/b", "--tables", "fills,ordrs"], "did you mean orders?"],
    ["a run id `current`", ["archive", "a/current"], "`current` is not a run id"],
    [
      "a run id with a control character",
      ["archive", "a/r\n1"],
      'the id "r\\n1" contains a control character',
    ],
    [
      "an instance with one",
      ["archive", "a\u001b", "--finished"],
      'the id "a\\u001b" contains a control character',
    ],
    ["a very long run id", ["archive", `a/${"r".repeat(1025)}`], "is longer than 1024 characters"],
    ["an instance alone", ["archive", "alpha-1"], "INSTANCE --finished"],
    ["an empty run id", ["archive", "a/"], "does not name a run"],
    ["a run without instance", ["rm", "/b"], "does not name a run"],
    ["nothing to archive", ["archive"], "no run is named"],
    ["--all without --finished", ["archive", "--all"], "--all needs --finished"],
    ["a run with --finished", ["archive", "a/b", "--finished"], "is a run"],
    ["no gateway", ["archive", "a/b"], "RUNVAULT_GATEWAY"],
    [
      "a gateway that is no address",
      ["archive", "a/b", "--gateway", "ftp://x"],
      "--gateway must be an http://",
    ],
    ["a decimal beyond 38 digits", ["archive", "a/b", "--decimal", "fills.price=39,1"], "--decimal"],
    ["an unknown fault", ["simulate", "--fault", "explode@fills"], "there is no kind explode"],
    ["a fault on an unknown table", ["simulate", "--fault", "cut@fils:1"], "Did you mean fills?"],
    ["late rows that never come", ["simulate", "--fault", "late@fills:3"], "its rows never appear"],
    ["a port out of range", ["simulate", "--port", "70000"], "--port must be a whole number from 0 to 65535"],
    ["an archive that is not there", ["runs", "--archive", "/nope"], "there is no such folder"],
  ];
  it.each(cases)("%s", async (_, args, text) => {
    const { status, stdout, stderr } = await runInside(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(text);
    expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+/m);
  });
});

describe("the frame", () => {
  it("prints help with an example for every command, on standard output", async () => {
    for (const command of [
      "archive",
      "runs",
      "query",
      "export",
      "verify",
      "maintain diff",
      "rm",
      "simulate",
    ]) {
      const { status, stdout, stderr } = await runInside([...command.split(" "), "--help"]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toMatch(/Examples?:\n {2}runvault /);
    }
  });

  it("tells in the help of serve and of token alike how tokens are read again", async () => {
    for (const command of [["serve"], ["serve", "token"]]) {
      const { stdout } = await runInside([...command, "--help"]);
      expect(stdout).toContain("SIGHUP");
      expect(stdout).not.toContain("start the server again");
    }
  });

  it("exits with 7 and a hint of its own when standard output cannot take the help", async () => {
    const out = () =>
      Promise.reject(RunvaultError.from(Object.assign(new Error("no space"), { code: "ENOSPC" })));
    const { status, stderr } = await runInside(["archive", "--help"], { out });
    expect(status).toBe(7);
    expect(stderr).toContain("runvault: storage_full");
  });

  it("prints the usage on standard error and exits with 2 when no command is given", async () => {
    const { status, stdout, stderr } = await runInside([]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain("Usage: runvault");
  });

  it("gives errors as one line of JSON on standard error with --json", async () => {
    const { status, stdout, stderr } = await runInside(["query", "--json", "--archive", dir, "SELECT 1"]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: "not_an_archive", place: { file: dir }, exit: 2 },
    });
    expect(JSON.parse((await runInside(["query", "--json", "--nope"])).stderr).error.code).toBe(
      "invalid_argument",
    );
  });

  it("takes flags over the environment over defaults, and names the variable that is wrong", async () => {
    const env = { RUNVAULT_ARCHIVE: "/from-env", RUNVAULT_CONCURRENCY: "none" };
    expect((await runInside(["export", "--list", "fills"], { env })).stderr).toContain("file /from-env");
    expect(
      (await runInside(["export", "--list", "fills", "--archive", "/from-flag"], { env })).stderr,
    ).toContain("file /from-flag");
    expect((await runInside(["archive", "a/b"], { env })).stderr).toContain(
      "RUNVAULT_CONCURRENCY (for --concurrency) must be a whole",
    );
    const both = await runInside(
      ["archive", "a/b", "--concurrency", "2", "--token-file", "/no/token", "--gateway", "http://x/api/v1"],
      { env },
    );
    expect(both.stderr).toContain("--token-file: the file cannot be read: ENOENT");
  });

  it("turns a flag on by a variable that says yes, and not by one that says no", () => {
    const flagFor = (value: string) => {
      const command = new Command("x")
        .exitOverride()
        .addOption(new Option("--accept-unframed").env("RUNVAULT_TEST_FLAG"));
      process.env.RUNVAULT_TEST_FLAG = value;
      try {
        command.parse([], { from: "user" });
        return checkedValues(z.object({ acceptUnframed: z.boolean().default(false) }), command)
          .acceptUnframed;
      } finally {
        delete process.env.RUNVAULT_TEST_FLAG;
      }
    };
    expect(["1", "true", "0", "false", "No"].map(flagFor)).toEqual([true, true, false, false, false]);
  });

  it("refuses an empty token file without a request", async () => {
    const file = join(dir, "token");
    await writeFile(file, "\n");
    const { status, stderr } = await runInside([
      "runs",
      "--gateway",
      "http://127.0.0.1:1/api/v1",
      "--token-file",
      file,
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain("the token file is empty");
  });

  it("exits with 3 when nothing listens, and never prints user, password or token", async () => {
    const file = join(dir, "secret");
    await writeFile(file, "s3cret-t0ken\n");
    const url = "http://somebody:passw0rd@127.0.0.1:1/api/v1";
    const secrets = /passw0rd|somebody|s3cret|abcdefgh/;
    const tail = ["--retries", "0", "--debug", "-v"];
    const withUser = await runInside(["runs", "--gateway", url, ...tail]);
    expect(withUser.status).toBe(3);
    expect(withUser.stderr).toContain("unreachable");
    expect(withUser.stderr).not.toMatch(secrets);
    const withToken = await runInside([
      "runs",
      "--gateway",
      "http://127.0.0.1:1/api/v1",
      "--token-file",
      file,
      ...tail,
    ]);
    expect(withToken.status).toBe(3);
    expect(withToken.stderr).not.toMatch(secrets);
    const query = await runInside(["runs", "--gateway", `${url}?token=abcdefgh`, "--debug"]);
    expect(query.stderr).not.toMatch(/passw0rd|somebody|abcdefgh/);
  });
});

describe("failures", () => {
  const report = (thrown: unknown, options: { json?: boolean; debug?: boolean } = {}) => {
    let text = "";
    const status = reportFailure(thrown, {
      json: false,
      debug: false,
      hintText: (hint) => hint,
      ...options,
      write: (part) => (text += part),
    });
    return { status, text };
  };

  it("show code, message, place and hint", () => {
    const error = new RunvaultError("stream_cut", "cut", {
      place: { run: "r", instance: "i", table: "fills" },
      hint: "Do.",
    });
    expect(report(error)).toEqual({
      status: 3,
      text: "runvault: stream_cut: cut\n  at: instance i, run r, table fills\n  hint: Do.\n",
    });
  });

  it("call an unknown exception a bug, with its stack only on request", () => {
    const bug = report(new TypeError("x is undefined"));
    expect(bug.status).toBe(1);
    expect(bug.text).toContain("This is a bug");
    expect(bug.text).not.toContain("failures");
    expect(report(new TypeError("x is undefined"), { debug: true }).text).toMatch(/at .*frame\.test\.ts/);
  });

  it("of several kinds exit with the first in precedence", () => {
    const errors = [
      new RunvaultError("locked", "l"),
      new RunvaultError("incomplete", "i"),
      new RunvaultError("archive_damaged", "d"),
    ];
    expect(report(new AggregateError(errors)).status).toBe(5);
    expect(report(new AggregateError(errors)).text.match(/^runvault:/gm)).toHaveLength(3);
  });
});

describe("names of runs", () => {
  it("read back as they were written, whatever the ids hold", () => {
    const id = fc.string({ minLength: 1, unit: "binary" });
    fc.assert(
      fc.property(
        id,
        id.filter((runId) => runId !== "current"),
        (instanceId, runId) => {
          expect(parseRun(formatRun({ instanceId, runId }))).toEqual({ instanceId, runId });
        },
      ),
    );
  });

  it("split at the first slash and keep other escapes", () => {
    expect(parseRun("a%2Fb%41/c/d%2F")).toEqual({ instanceId: "a/b%41", runId: "c/d%2F" });
  });
});

describe("secrets", () => {
  it("are taken out of text wherever they stand", () => {
    const scrubber = createScrubber();
    scrubber.add("t0p/secret");
    const text =
      "GET http://u:p@host/x?a=1&token=zzz&b=2 Authorization: Bearer abcdef.ghi t0p/secret t0p%2Fsecret";
    expect(scrubber.scrub(text)).toBe(
      "GET http://***@host/x?a=1&token=***&b=2 Authorization: Bearer *** *** ***",
    );
    expect(scrubber.scrub("error at http://host/api/v1: token is wrong")).toBe(
      "error at http://host/api/v1: token is wrong",
    );
  });
});

describe("log lines", () => {
  it("are short text or JSON, from the level on", () => {
    const lines: string[] = [];
    const log = createLog({ format: "text", level: "warn", write: (line) => lines.push(line) });
    log.info("not shown");
    log.warn({ table: "fills", attempt: 2 }, "asking again");
    expect(lines).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d warn: asking again table=fills attempt=2\n$/),
    ]);
    const json: string[] = [];
    createLog({ format: "json", level: "debug", write: (line) => json.push(line) }).debug({ a: 1 }, "m");
    expect(JSON.parse(json[0]!)).toMatchObject({ level: "debug", a: 1, msg: "m" });
  });
});

describe("the simulated clock", () => {
  it("is the wall's, stands still, or runs faster", () => {
    let now = 100n;
    const wall = () => now;
    expect(clockFrom("wall", wall)()).toBe(100n);
    const still = clockFrom("2022-01-01", wall);
    const fast = clockFrom("1000*60", wall);
    now = 101n;
    expect(still()).toBe(1_640_995_200_000_000_000n);
    expect(fast()).toBe(1060n);
    expect(() => clockFrom("1000*0", wall)).toThrow("invalid clock");
  });
});
