import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtMain, inProject } from "../fixtures/command/project.ts";
import { oldestNode, requires } from "../fixtures/command/requirement.ts";

// the product promises more than the one version of Node that it is developed and otherwise tested with
describe.skipIf(!requires("oldest-node"))("the oldest Node that is promised", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "runvault-oldest-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const start = (args: readonly string[]) => {
    const env = { PATH: process.env.PATH, HOME: folder, RUNVAULT_ARCHIVE: join(folder, "archive") };
    return spawn(oldestNode, [builtMain, ...args], { env, cwd: folder });
  };
  /** What a command prints; throws where it fails or says that something is not defined. */
  const run = async (args: readonly string[], stdin = ""): Promise<string> => {
    const child = start(args);
    let [out, err] = ["", ""];
    child.stdout.on("data", (part) => {
      out += part;
    });
    child.stderr.on("data", (part) => {
      err += part;
    });
    child.stdin.end(stdin);
    const [status] = await once(child, "close");
    expect({ args, status, err }).toEqual({
      args,
      status: 0,
      err: expect.not.stringMatching(/not defined|not a function/),
    });
    return out;
  };
  const serving = async (args: readonly string[]) => {
    const child = start([...args, "--port", "0"]);
    const lines = createInterface({ input: child.stdout });
    const [url] = (await once(lines, "line")) as [string];
    const stop = async () => {
      const closed = once(child, "close");
      child.kill();
      await closed;
    };
    return { url, [Symbol.asyncDispose]: stop };
  };

  test("is the one that package.json names", async () => {
    const { engines } = JSON.parse(await readFile(inProject("package.json"), "utf8")) as {
      engines: { node: string };
    };
    const child = spawn(oldestNode, ["--version"]);
    const [version] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    expect(`>=${version.slice(1)}`).toBe(engines.node);
  });

  test("runs every command", async () => {
    await using gateway = await serving(["simulate", "--rows", "500", "--runs", "2"]);
    const runs = JSON.parse(
      await run(["archive", "--gateway", gateway.url, "--all", "--finished", "--json"]),
    );
    expect(runs.counts ?? runs).toBeTruthy();
    await run(["archive", "--gateway", gateway.url, "--all", "--finished", "--dry-run"]);
    expect(await run(["query", "SELECT count(*) AS n FROM fills", "--format", "csv"])).toMatch(/^n\r?\n\d+/);
    await run(["query", "-o", "fills.parquet", "SELECT * FROM fills"]);
    expect(await run(["shell", "--format", "csv"], "SELECT 1 AS one;\nSELECT 2 AS two;\n")).toContain("two");
    await run(["export", "fills", "orders", "--out", "run.duckdb", "--format", "duckdb"]);
    await run(["export", "fills", "--out", "fills.csv"]);
    await run(["runs", "--json"]);
    await run(["status"]);
    await run(["verify", "--deep"]);
    await run(["export", "--list", "fills"]);
    await run(["maintain", "diff", "archive", "archive"]);
    await run(["maintain", "rebuild"]);
    await run(["maintain", "rebuild", "--links"]);
    const map = "tables: { fills: { columns: { liquidity: absent } } }";
    await writeFile(join(folder, "kept.yaml"), `profile: 1\nname: kept\nextends: default\n${map}\n`);
    await run(["maintain", "rebuild", "--profile", "kept.yaml"]);
    await run(["maintain", "rebuild", "--extra", "fills"]);
    await run(["completion", "bash"]);
    await run(["rm", "--older-than", "1d", "--dry-run"]);
  }, 180_000);

  test("serves an archive", async () => {
    await using served = await serving(["serve"]);
    const instances = (await (await fetch(`${served.url}/history/instances`)).json()) as {
      instances: { instance_id: string; run_ids: string[] }[];
    };
    const [{ instance_id, run_ids }] = instances.instances as [{ instance_id: string; run_ids: string[] }];
    const rows = await fetch(`${served.url}/history/fills?instance=${instance_id}&run_id=${run_ids[0]}`);
    expect((await rows.text()).split("\n").length).toBeGreaterThan(10);
    expect((await fetch(`${served.url}/files/fills`)).status).toBe(200);
    expect((await fetch(new URL("/openapi.json", served.url))).status).toBe(200);
  }, 60_000);
});
