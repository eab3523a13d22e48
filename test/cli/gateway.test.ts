import { access, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RunRef, StorageFacts } from "../../src/model/source.ts";
import type { TimeBounds } from "../../src/model/time.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const named = "alpha/2022-01-01";
const nowhere = "http://127.0.0.1:1/api/v1";

let folder: string;
let pristine: string;
let dir: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-cli-gateway-"));
  pristine = join(folder, "pristine");
  dir = join(folder, "archive");
  await archiveWorld(pristine, new ArraySource(worldRun, smallWorld()), { tables: ["fills"] });
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** Serves the small world while the action runs. */
async function served(
  more: Partial<ServeOptions>,
  action: (url: string, server: Served) => Promise<void>,
): Promise<void> {
  const source = new ArraySource(worldRun, smallWorld());
  const server = await serve({ source, host: "127.0.0.1", port: 0, ...more });
  try {
    await action(server.url, server);
  } finally {
    await server.close();
  }
}

/** Has facts of its one run only, as a gateway would. */
class OneRunSource extends ArraySource {
  override async facts(run: RunRef, bounds: TimeBounds): Promise<StorageFacts | null> {
    if (run.runId !== this.run.runId) throw new RunvaultError("run_not_found", "there is no such run");
    return await super.facts(run, bounds);
  }
}

const fills = (url: string, ...names: string[]) => [
  "archive",
  ...names,
  "--gateway",
  url,
  "--archive",
  dir,
  "--tables",
  "fills",
];

describe("requests that are repeated", () => {
  it("are counted in the report, whoever repeats them", async () => {
    await served({ wire: withFaults("status-500@fills*2") }, async (url) => {
      const done = JSON.parse((await runInside([...fills(url, named), "--json"])).stdout);
      expect(done).toMatchObject({ exit: 0, runs: [{ state: "COMPLETE", retries: 2 }], notTried: [] });
      // nothing was repeated to find that nothing changed
      const again = JSON.parse((await runInside([...fills(url, named), "--json"])).stdout);
      expect(again.runs).toMatchObject([{ changed: false, retries: 0 }]);
    });
  });

  it("are told on standard error when the wait is one that a user notices", async () => {
    await served({ wire: withFaults("rate-limit@instances:1") }, async (url) => {
      const { status, stderr } = await runInside(["runs", "--gateway", url]);
      expect(status).toBe(0);
      expect(stderr).toMatch(/warn: waiting before the next attempt .*code=rate_limited status=429/);
    });
  });
});

describe("an archive that is not there yet", () => {
  it("is not made for a run that the gateway does not know", async () => {
    await served({}, async (url) => {
      expect((await runInside(fills(url, "alpha/nope"))).status).toBe(9);
      await expect(access(dir)).rejects.toThrow("ENOENT");
    });
  });

  it("cannot be planned for where the gateway has no storage facts", async () => {
    await served({ literal: true }, async (url) => {
      const text = await runInside([...fills(url, named), "--dry-run"]);
      expect(text.status).toBe(0);
      expect(text.stdout).toContain("space needed is unknown: the gateway has no storage facts");
      const plan = JSON.parse((await runInside([...fills(url, named), "--dry-run", "--json"])).stdout);
      expect(plan).toMatchObject({ neededBytes: null, fits: null });
    });
  });
});

it("runs that were not tried are named, after an error that ends all", async () => {
  const names = [named, "alpha/2022-01-02"];
  const text = await runInside([...fills(nowhere, ...names), "--retries", "0"]);
  expect(text.status).toBe(3);
  expect(text.stdout).toMatch(
    /^alpha\/2022-01-01 {2}failed: unreachable\nalpha\/2022-01-02 {2}not tried\n2 runs: 1 failed, 1 not tried; took [\d.]+ s\n$/,
  );
  const json = JSON.parse(
    (await runInside([...fills(nowhere, ...names), "--retries", "0", "--json"])).stdout,
  );
  expect(json.notTried).toEqual([{ instanceId: "alpha", runId: "2022-01-02" }]);
});

describe("verify --against", () => {
  const verify = (url: string, ...more: string[]) =>
    runInside(["verify", "--archive", dir, "--against", url, "--retries", "0", ...more]);

  beforeEach(() => cp(pristine, dir, { recursive: true }));

  it("agrees with the gateway that the archive came from", async () => {
    await served({}, async (url) => {
      expect(await verify(url)).toMatchObject({ status: 0, stdout: expect.stringContaining("verified") });
    });
  });

  it("tells of damage though the gateway is out of reach", async () => {
    const { stdout: files } = await runInside(["export", "--list", "fills", "--archive", dir]);
    await writeFile(files.trim().split("\n")[0]!, "not Parquet");
    const text = await verify(nowhere);
    expect(text.status).toBe(5);
    expect(text.stdout).toMatch(/^alpha\/2022-01-01 {2}DAMAGED/);
    expect(text.stdout).toContain("notice: facts: not compared: unreachable");
    expect(text.stderr).toContain("runvault: unreachable: nothing is listening there");
    const json = JSON.parse((await verify(nowhere, "--json")).stdout);
    expect(json).toMatchObject({ exit: 5, runs: [{ damaged: true, compared: false, exit: 5 }] });
  });

  it("calls a sound run not compared while the gateway is out of reach, and exits with 3", async () => {
    const { status, stdout } = await verify(nowhere);
    expect(status).toBe(3);
    expect(stdout).toMatch(/^alpha\/2022-01-01 {2}not compared: \d+ checks passed$/m);
    expect(stdout).toContain("next: Run the same command again once the gateway answers.");
    expect(stdout).not.toMatch(/not proven|unproven|[Aa]rchive the run|quarantine/);
    const { runs } = JSON.parse((await verify(nowhere, "--json")).stdout);
    expect(runs).toMatchObject([
      { damaged: false, unproven: false, compared: false, notCompared: "unreachable", exit: 3 },
    ]);
  });

  it("says of lost segments of a run that the gateway does not know to restore them, and not to fetch them", async () => {
    const archive = await openArchive(dir);
    const { file } = (await archive.manifest(worldRun))!.tables.fills!.proven!.segments[0]!;
    await rm(join(archive.layout.dataDir(worldRun), file));
    const other = { instanceId: "alpha", runId: "2022-01-02" };
    await served({ source: new OneRunSource(other, smallWorld()) }, async (url) => {
      const { status, stdout } = await verify(url, "--repair");
      expect(status).toBe(5);
      expect(stdout).toContain("next: Restore the files from a copy of the archive");
      expect(stdout).not.toMatch(/runvault (archive|rm|verify)/);
    });
  });

  it("goes on after a run that the gateway does not know, and exits with 9", async () => {
    const other = { instanceId: "alpha", runId: "2022-01-02" };
    await archiveWorld(dir, new ArraySource(other, smallWorld(5, other)), { tables: ["fills"] });
    await served({ source: new OneRunSource(worldRun, smallWorld()) }, async (url) => {
      const { status, stdout } = await verify(url);
      expect(status).toBe(9);
      expect(stdout).toMatch(/^alpha\/2022-01-01 {2}verified/m);
      expect(stdout).toMatch(/^alpha\/2022-01-02 {2}not compared: /m);
      expect(stdout).toContain("not compared: run_not_found");
      expect(stdout).toContain("next: Check that this is the run's gateway");
    });
  });

  it("calls nothing verified that could not be compared", async () => {
    await served({ literal: true }, async (url) => {
      const { status, stdout } = await verify(url);
      expect(status).toBe(4);
      expect(stdout).toContain("not compared: the gateway has no storage facts");
      expect(stdout).not.toContain("verified");
    });
  });
});

describe("the environment", () => {
  it("does not count where it is empty, nor for a gateway that is not asked", async () => {
    await cp(pristine, dir, { recursive: true });
    const empty = { RUNVAULT_ARCHIVE: "", RUNVAULT_CONCURRENCY: "", RUNVAULT_TOKEN_FILE: "" };
    const archive = ["--archive", dir];
    expect(
      await runInside(["runs", ...archive], { env: { ...empty, RUNVAULT_LOG_FORMAT: "" } }),
    ).toMatchObject({
      status: 0,
      stderr: "",
    });
    expect((await runInside(["runs"], { env: { RUNVAULT_ARCHIVE: "" } })).stderr).toContain("file archive");
    const wrong = { env: { RUNVAULT_CONCURRENCY: "x" } };
    expect((await runInside(["runs", ...archive], wrong)).status).toBe(0);
    expect((await runInside(["verify", ...archive], wrong)).status).toBe(0);
    const asked = await runInside(["runs", "--gateway", nowhere], wrong);
    expect(asked.status).toBe(2);
    expect(asked.stderr).toContain("RUNVAULT_CONCURRENCY (for --concurrency) must be a whole number");
  });
});

it("a invalid % escape in the gateway's password is wrong usage, and is not shown", async () => {
  const { status, stderr } = await runInside([
    "runs",
    "--gateway",
    "http://u:%ZZs3cret@127.0.0.1:1/api/v1",
    "-v",
  ]);
  expect(status).toBe(2);
  expect(stderr).toContain("invalid % escape");
  expect(stderr).not.toContain("s3cret");
});
