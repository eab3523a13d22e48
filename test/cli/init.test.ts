// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are shown as they are written
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { HistorySource } from "../../src/model/source.ts";
import { TokenList } from "../../src/serve/auth/token-list.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { JobWorld } from "../fixtures/pipeline/job-world.ts";
import { ScriptedLists } from "../fixtures/source/scripted-lists.ts";

let world: JobWorld;
let folder: string;
beforeAll(async () => {
  world = await JobWorld.open(2, 3);
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-init-"));
  vi.spyOn(process, "cwd").mockReturnValue(folder);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true, force: true });
});

const inside = (name: string) => join(folder, name);

/** Serves a source while something is done with it. */
async function withGateway<T>(
  source: HistorySource,
  token: string | null,
  body: (served: Served) => Promise<T>,
) {
  const served = await serve({
    ...{ source, host: "127.0.0.1", port: 0, onError: () => {} },
    ...(token === null ? {} : { tokens: TokenList.single(token) }),
  });
  try {
    return await body(served);
  } finally {
    await served.close();
  }
}

describe("runvault init", () => {
  it("writes a file that the check takes as it is, and says what to do next", async () => {
    const out = inside("nightly.yaml");
    const { status, stdout, stderr } = await runInside(["init", world.url, "--out", out]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.replaceAll(out, "nightly.yaml")).toBe(`\
nightly.yaml: written for 2 instances with 6 runs
next:
  runvault check nightly.yaml --connect
  runvault run nightly.yaml --dry-run
  runvault run nightly.yaml
`);
    const text = await readFile(out, "utf8");
    expect(text.split("\n", 1)).toEqual(["# yaml-language-server: $schema=./pipeline.schema.json"]);
    expect(text).toContain("\n  instances:\n    - i1 # 3 runs\n    - i2 # 3 runs\n");
    expect(text).toContain("\nrequire: counted # ");
    const checked = await runInside(["check", out, "--connect"]);
    expect(checked).toMatchObject({ status: 0, stderr: "" });
    expect(checked.stdout).toContain("2 instances; 6 runs of this job (6 new)");
  });

  it("leaves a file that is there alone, before it asks anybody", async () => {
    const out = inside("mine.yaml");
    await writeFile(out, "mine");
    const refused = await runInside(["init", "http://127.0.0.1:1/api/v1", "--out", out]);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain("the file exists already");
    expect(refused.stderr).toContain("--force");
    expect(await readFile(out, "utf8")).toBe("mine");
    // a link stays one
    await symlink(out, inside("link.yaml"));
    const forced = await runInside(["init", world.url, "--out", inside("link.yaml"), "--force"]);
    expect(forced.status).toBe(0);
    expect(await readFile(out, "utf8")).toContain("\nname: link # ");
    const ofFolder = await runInside(["init", world.url, "--out", folder, "--force"]);
    expect(ofFolder).toMatchObject({ status: 2, stdout: "" });
    expect(ofFolder.stderr).toContain("not a regular file");
  });

  it("prints it where the output is -, and reports as JSON otherwise", async () => {
    const printed = await runInside(["init", world.url, "--out", "-", "--name", "weekly"]);
    expect(printed).toMatchObject({ status: 0, stderr: "" });
    expect(printed.stdout).toContain("\nname: weekly # ");
    const out = inside("new/place/job.yaml");
    const { stdout } = await runInside(["init", world.url, "--out", out, "--json"]);
    expect(JSON.parse(stdout)).toEqual({ file: out, name: "job", instances: 2, runs: 6 });
    expect((await stat(out)).isFile()).toBe(true);
  });

  it("writes paths so that they are found from the file's folder", async () => {
    await mkdir(inside("jobs"));
    await writeFile(inside("token"), "a-token\n", { mode: 0o600 });
    const out = inside("jobs/nightly.yaml");
    const options = [
      "--archive",
      "data/${X}/a b",
      "--token-file",
      inside("token"),
      "--max-rps",
      "5",
      "--headers-timeout",
      "1500ms",
    ];
    const { status } = await runInside(["init", world.url, "--out", out, ...options]);
    expect(status).toBe(0);
    const text = await readFile(out, "utf8");
    expect(text).toContain('\narchive: "../data/$${X}/a b" # ');
    expect(text).toContain(`\n  token: { file: ${inside("token")} } # `);
    expect(text).toContain("\n  budget: { rps: 5, answers: 4, connect: 10s, headers: 1500ms, idle: 60s } # ");
    expect(text).not.toContain("a-token");
    expect((await runInside(["check", out])).status).toBe(0);
  });

  it("names the variables of the environment, and nothing that they hold", async () => {
    await withGateway(world.runs, "s3cret-token", async ({ url }) => {
      const env = {
        RUNVAULT_GATEWAY: url,
        RUNVAULT_ARCHIVE: inside("s3cret-archive"),
        RUNVAULT_TOKEN: "s3cret-token",
      };
      const out = inside("nightly.yaml");
      expect(await runInside(["init", "--out", out], { env })).toMatchObject({ status: 0, stderr: "" });
      const text = await readFile(out, "utf8");
      for (const value of Object.values(env)) expect(text).not.toContain(value);
      expect(text).toContain("\n  url: ${RUNVAULT_GATEWAY}\n  token: { env: RUNVAULT_TOKEN } # ");
      expect(text).toContain("\narchive: ${RUNVAULT_ARCHIVE} # ");
      expect(text).toContain("\n#   RUNVAULT_TOKEN    the gateway's token\n");
      const checked = await runInside(["check", out, "--connect"], { env });
      expect(checked).toMatchObject({ status: 0 });
      expect(checked.stdout).not.toContain("s3cret");

      await writeFile(inside("token"), "s3cret-token\n", { mode: 0o600 });
      const files = { ...env, RUNVAULT_TOKEN: "", RUNVAULT_TOKEN_FILE: inside("token") };
      const printed = await runInside(["init", "--out", "-"], { env: files });
      // what is on the command line comes ahead of the environment
      const ahead = await runInside(["init", world.url, "--out", "-"], { env: { RUNVAULT_GATEWAY: url } });
      expect(ahead.stdout).toContain(`\n  url: ${world.url}\n`);
      const own = ["--archive", env.RUNVAULT_ARCHIVE];
      const named = await runInside(["init", ...own, "--out", "-"], { env });
      expect(named.stdout).toContain(`\narchive: ${env.RUNVAULT_ARCHIVE} # `);
      const flag = await runInside(["init", "--gateway", world.url, "--out", "-"]);
      expect(flag.stdout).toContain(`\n  url: ${world.url}\n`);
      expect(printed.stdout).toContain('\n  token: { file: "${RUNVAULT_TOKEN_FILE}" } # ');
    });
  });

  it.each([
    [["init"], {}, 2, "no gateway is named"],
    [
      ["init", "--out", "-"],
      { RUNVAULT_GATEWAY: "ftp://h" },
      2,
      "RUNVAULT_GATEWAY (for --gateway) must be an http",
    ],
    [["init", "http://h/a", "--gateway", "http://h/b", "--out", "-"], {}, 2, "two gateways are named"],
    [["init", "nonsense", "--out", "-"], {}, 2, "must be an http"],
    [["init", "http://a:pass-word@127.0.0.1:1/api/v1", "--out", "-"], {}, 2, "no user and password"],
    [["init", "http://127.0.0.1:1/api/v1", "--out", "-", "--retries", "0"], {}, 3, "nothing is listening"],
  ])("%j ends with why it could not", async (args, env, expected, words) => {
    const { status, stdout, stderr } = await runInside(args, { env });
    expect({ status, stdout }).toEqual({ status: expected, stdout: "" });
    expect(stderr).toContain(words);
    expect(stderr).toContain("hint: ");
    expect(stderr).not.toContain("pass-word");
  });

  it("says what a job file cannot have, and writes none", async () => {
    for (const [options, words] of [
      [["--name", "Bad Name"], "name must be 1 to 52 lower-case letters"],
      [["--archive", "a\nb"], "must not contain control characters"],
      [["--token-header", "not a header"], "header"],
    ] as const) {
      const out = inside("x.yaml");
      const { status, stderr } = await runInside(["init", world.url, "--out", out, ...options]);
      expect(status, stderr).toBe(2);
      expect(stderr).toContain(words);
      await expect(stat(out)).rejects.toThrow("ENOENT");
    }
  });

  it("is refused where the token is", async () => {
    await withGateway(world.runs, "another", async ({ url }) => {
      const { status } = await runInside(["init", url, "--out", "-"], { env: { RUNVAULT_TOKEN: "wrong" } });
      expect(status).toBe(9);
    });
  });
});

describe("for gateways that are unlike others, runvault init", () => {
  const entry = (instanceId: string, runId: string, status: string) => ({
    ...{ instanceId, runId, status, started: 1n, ended: 2n, final: true, storageVersion: undefined },
  });
  const odd = [
    "a*b",
    "what?",
    'say "x"',
    "# no",
    "a: b",
    "${HOME}",
    "日本",
    "%2F",
    "a/b",
    "[x]",
    "- y",
    "null",
  ];

  it("takes instances whatever they are called, and leaves out what cannot be asked for", async () => {
    const names = Object.fromEntries(
      [...odd, "bell\u0007"].map((name) => [name, [entry(name, "r1", "DONE")]]),
    );
    const runs = Object.fromEntries(Object.entries(names).map(([name, list]) => [name, [list]]));
    const source = new ScriptedLists({ REST: { runs } });
    await withGateway(source, null, async ({ url }) => {
      const out = inside("odd.yaml");
      const { status, stderr } = await runInside(["init", url, "--out", out]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const text = await readFile(out, "utf8");
      expect(text).not.toContain("\u0007");
      expect(text).toContain("\n  # finished_status: [DONE] # ");
      expect(text).toContain("\nrequire: any # this gateway does not count its rows");
      expect(text).toContain("\nrecheck: 7d # this gateway has no storage_version");
      const checked = await runInside(["check", out, "--connect", "--json"]);
      const [file] = JSON.parse(checked.stdout).files;
      expect(file.connect.gateway).toMatchObject({ instances: odd.length, runs: odd.length });
      expect(file.faults).toEqual([]);
    });
  });

  it("takes those to come where there are none", async () => {
    await withGateway(new ScriptedLists({ REST: { runs: {} } }), null, async ({ url }) => {
      const { stdout } = await runInside(["init", url, "--out", "-"]);
      expect(stdout).toContain(
        '\n  instances: ["*"] # the gateway has none yet; this matches all future ones\n',
      );
    });
  });
});
