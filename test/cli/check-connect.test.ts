// @module-tag slow
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are shown as they are written
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { JobWorld } from "../fixtures/pipeline/job-world.ts";

let world: JobWorld;
let folder: string;
/** Takes connections, and keeps what it is sent. */
let listener: Server;
let received = 0;
let connections = 0;
let hook: string;
beforeAll(async () => {
  world = await JobWorld.open(2, 2);
  folder = await mkdtemp(join(tmpdir(), "runvault-connect-"));
  await writeFile(join(folder, "plain"), "");
  await writeFile(join(folder, "other"), "");
  await mkdir(join(folder, "metrics"));
  await mkdir(join(folder, "bin"));
  await writeFile(join(folder, "bin/page"), "#!/bin/sh\n");
  await chmod(join(folder, "bin/page"), 0o755);
  await writeFile(join(folder, "bin/idle"), "");
  await chmod(join(folder, "bin/idle"), 0o644);
  listener = createServer((socket) => {
    connections++;
    socket.on("data", (bytes) => {
      received += bytes.length;
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
  hook = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/s3cret-hook`;
});
afterAll(async () => {
  listener.close();
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  world.log.length = 0;
});

/** Checks a job file with these keys beside, or in place of, the usual ones. */
async function check(keys: object, env: Record<string, string> = {}, ...options: string[]) {
  const file = join(folder, "job.yaml");
  const { gateway, ...rest } = keys as { gateway?: object };
  const job = {
    ...{ version: 1, name: "nightly", gateway: { url: world.url, budget: { rps: 1000 }, ...gateway } },
    ...{ archive: "archive", ...("run" in rest ? {} : { runs: {} }), ...rest },
  };
  await writeFile(file, JSON.stringify(job));
  const done = await runInside(["check", file, "--connect", ...options], { env });
  return { ...done, stdout: done.stdout.replaceAll(`${folder}/`, "") };
}

async function faultsOf(keys: object, env: Record<string, string> = {}) {
  const { status, stdout } = await check(keys, env, "--json");
  const { files } = JSON.parse(stdout) as {
    files: {
      faults: { level: string; key: string; line: number; message: string; hint: string }[];
      connect: object;
    }[];
  };
  for (const { line, hint } of files[0]!.faults) {
    expect(line).toBe(1);
    expect(hint).not.toBe("");
  }
  return {
    status,
    connect: files[0]!.connect,
    faults: files[0]!.faults.map(({ level, message }) => `${level}: ${message}`),
  };
}

describe("runvault check --connect", () => {
  it("says what there is, and when it starts", async () => {
    const { status, stdout, stderr } = await check({
      schedule: { cron: "15 2 * * *", timezone: "America/New_York" },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toBe("job.yaml: ok");
    expect(lines.filter((line) => /^ {10}\w{3} \d{4}-\d\d-\d\d 02:15 \(/.test(line))).toHaveLength(5);
    expect(lines.at(-2)).toBe("  found   gateway: 2 instances; 4 runs of this job (4 new)");
    expect(lines.at(-1)).toMatch(
      /^ {10}archive: will be created; the pending runs need about [\d.]+ k?B; [\d.]+ [GT]B free$/,
    );
    // nothing was made, and no rows were asked for
    expect(await readdir(folder)).not.toContain("archive");
    expect(world.log.filter(({ path }) => path.includes("fills"))).toEqual([]);
    expect(world.log.length).toBeGreaterThan(0);
  });

  it("asks nobody without the option", async () => {
    const file = join(folder, "job.yaml");
    await check({});
    world.log.length = 0;
    const { stdout } = await runInside(["check", file, "--json"]);
    expect(world.log).toEqual([]);
    expect(JSON.parse(stdout).files[0]).not.toHaveProperty("connect");
  });

  it("tells of everything at once, each with its place, and ends with the worst of it", async () => {
    const env = { INST: "s3cret-instance", HOOK: "http://127.0.0.1:1/s3cret", BEAT: hook };
    const { status, faults } = await faultsOf(
      {
        archive: "plain",
        runs: { instances: ["i3", "${INST}", "zeta-*", "i2"] },
        after: {
          exports: [
            { tables: ["fills"], out: "other/x.parquet" },
            { tables: ["fills", "equity"], format: "csv", out: "other" },
            { tables: ["fills"], format: "csv", out: "metrics" },
            { tables: ["fills"], out: "new/x.parquet" },
          ],
        },
        notify: { webhook: { url_env: "HOOK" }, heartbeat: { url_env: "BEAT" }, command: ["nosuchprogram"] },
        metrics: { textfile: "nowhere/x.prom" },
      },
      env,
    );
    expect(status).toBe(9);
    expect(faults).toEqual([
      "error: archive: this is a file, not a folder",
      'error: runs.instances.0: the gateway has no instance "i3"',
      "error: runs.instances.1: the gateway has no instance of this name",
      "warning: runs.instances.2: no instance of the gateway matches it",
      "error: after.exports.0.out: its folder is a file, not a folder",
      "error: after.exports.1.out: a folder is needed, but a file has this name",
      "error: after.exports.2.out: a file is needed, but a folder has this name",
      "error: notify.webhook.url_env: the address does not take connections (ECONNREFUSED)",
      "error: notify.command.0: the program was not found",
      "error: metrics.textfile: its folder does not exist",
    ]);
    const { stdout } = await check({ runs: { instances: ["${INST}"] } }, env);
    expect(stdout).not.toContain("s3cret");
    expect(stdout).toMatch(/job.yaml: 1 error\n$/);
  });

  it("reads the file of instruments, which would fail each night that commits a run", async () => {
    await writeFile(join(folder, "right.yaml"), '- symbol: "*"\n  currency: USD\n');
    await writeFile(join(folder, "wrong.yaml"), '- symbol: "*"\n  curency: USD\n');
    const instruments = (file: string) => faultsOf({ after: { reconcile: { instruments: file } } });
    expect(await instruments("right.yaml")).toMatchObject({
      ...{ status: 0, faults: [] },
      connect: { targets: [{ key: "after.reconcile.instruments", ok: true }] },
    });
    const { status, faults } = await instruments("wrong.yaml");
    expect({ status, faults }).toEqual({
      status: 2,
      faults: ["error: after.reconcile.instruments: line 2: there is no key curency in entry 1"],
    });
    expect((await instruments("none.yaml")).faults).toEqual([
      "error: after.reconcile.instruments: the file does not exist",
    ]);
  });

  it("connects to those who are told, and sends them nothing", async () => {
    const before = connections;
    const { status, connect } = await faultsOf(
      {
        notify: {
          webhook: { url_env: "HOOK" },
          heartbeat: { url_env: "HOOK" },
          command: ["bin/../bin/page"],
        },
        metrics: { pushgateway: "http://127.0.0.1:1" },
      },
      { HOOK: hook },
    );
    expect(status).toBe(3);
    expect(connect).toMatchObject({
      exit: 3,
      targets: [
        { key: "notify.heartbeat.url_env", ok: true },
        { key: "notify.webhook.url_env", ok: true },
        { key: "notify.command.0", ok: true },
        { key: "metrics.pushgateway", ok: false },
      ],
    });
    expect(connections - before).toBe(2);
    expect(received).toBe(0);
  });

  it("takes a listener without TLS for no https", async () => {
    const { status, faults } = await faultsOf(
      { notify: { webhook: { url_env: "HOOK" } } },
      { HOOK: `https://127.0.0.1:${new URL(world.url).port}/x` },
    );
    expect(status).toBe(3);
    expect(faults[0]).toMatch(/^error: notify.webhook.url_env: the address does not take connections \(E/);
  });

  it("goes through the proxy of the environment, but not for those that no_proxy names", async () => {
    const proxied = { http_proxy: hook, ALERT: "http://hooks.invalid/x" };
    const job = { notify: { webhook: { url_env: "ALERT" } } };
    expect((await faultsOf(job, proxied)).status).toBe(0);
    const { status, faults } = await faultsOf(job, { ...proxied, no_proxy: "localhost, .invalid" });
    expect(status).toBe(3);
    expect(faults[0]).toMatch(/\((ENOTFOUND|EAI_AGAIN)\)$/);
  });

  it.each([
    [{ notify: { command: ["bin/idle"] } }, "may not be run"],
    [{ notify: { command: ["./metrics"] } }, "was not found"],
    [{ metrics: { textfile: "plain/x.prom" } }, "its folder"],
  ])("%j ends with 2", async (keys, words) => {
    const { status, faults } = await faultsOf(keys);
    expect(status).toBe(2);
    expect(faults.join()).toContain(words);
  });
});

describe("of a gateway, runvault check --connect", () => {
  it("says that it is out of reach, and still what else is wrong", async () => {
    const { status, connect, faults } = await faultsOf({
      gateway: { url: "http://127.0.0.1:1/api/v1" },
      archive: "plain",
    });
    expect(status).toBe(3);
    expect(faults).toEqual([
      "error: gateway.url: nothing is listening there (ECONNREFUSED)",
      "error: archive: this is a file, not a folder",
    ]);
    expect(connect).toMatchObject({ exit: 3, gateway: null, archive: { usable: false, format: null } });
  });

  it("says that it wants a token, or another one, and where one cannot be read", async () => {
    await world.serve("the-token");
    try {
      expect(await faultsOf({})).toMatchObject({
        status: 9,
        faults: ["error: gateway: the gateway requires a token"],
      });
      expect(
        await faultsOf({ gateway: { token: { env: "TOKEN" } } }, { TOKEN: "wr0ng-token" }),
      ).toMatchObject({
        status: 9,
        faults: ["error: gateway.token: the gateway refuses the token"],
      });
      expect(await faultsOf({ gateway: { token: { env: "TOKEN" } } }, { TOKEN: "the-token" })).toMatchObject({
        status: 0,
        faults: [],
      });
      const { status, faults } = await faultsOf({ gateway: { token: { file: "none" } } });
      expect(status).toBe(2);
      expect(faults).toEqual([
        "warning: gateway.token.file: this file does not exist here",
        "error: gateway.token.file: the file cannot be read (ENOENT)",
      ]);
      await writeFile(join(folder, "empty"), "\n", { mode: 0o600 });
      expect(await faultsOf({ gateway: { token: { file: "empty" } } })).toMatchObject({
        faults: ["error: gateway.token.file: the token file is empty"],
      });
    } finally {
      await world.serve();
    }
  });

  it("says that a run does not exist, but not what the environment calls it", async () => {
    expect(await faultsOf({ run: "i1/r9" })).toMatchObject({
      status: 9,
      faults: ['error: run: instance "i1" has no run "r9"'],
    });
    expect(await faultsOf({ run: "${RUN}" }, { RUN: "i1/s3cret" })).toMatchObject({
      status: 9,
      faults: ["error: run: the gateway has no such run"],
    });
  });

  it("warns where no run is taken", async () => {
    const { status, faults } = await faultsOf({ runs: { exclude: ["*/*"] } });
    expect({ status, faults }).toEqual({
      status: 0,
      faults: ["warning: runs: no run of the gateway matches now"],
    });
  });

  // keep.runs was not among what the hint names
  it("names keep.runs where the job has it, because older runs are not fetched", async () => {
    const { stdout } = await check({ keep: { runs: "1min" } }, {}, "--json");
    const [fault] = JSON.parse(stdout).files[0].faults;
    expect(fault.message).toContain("no run of the gateway matches now");
    expect(fault.hint).toContain("ended_within, exclude and keep.runs;");
  });

  it("says what is done and what is new once there is an archive", async () => {
    await world.write({ runs: { instances: ["i1"] } });
    const file = join(world.folder, "nightly.yaml");
    expect((await world.execute(file)).exit).toBe(0);
    await world.write();
    const { status, stdout } = await runInside(["check", file, "--connect", "--json"]);
    expect(status).toBe(0);
    expect(JSON.parse(stdout).files[0].connect).toMatchObject({
      gateway: { instances: 2, runs: 4, plans: { new: 2, unchanged: 2 } },
      archive: { usable: true, format: 1 },
    });
  });
});
