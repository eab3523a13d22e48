import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exit } from "../../src/model/error.ts";
import { type Finished, run, start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";
import {
  btc,
  globbedBars,
  recordedBars,
  simulate,
  writeFirstBars,
} from "../fixtures/source/recorded-bars.ts";

const shipped = (name: string) => inProject(`pipelines/${name}.yaml`);

let folder: string;
let receiver: Server;
let alertUrl: string;
const beats: string[] = [];
const alerts: string[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-shipped-"));
  await mkdir(join(folder, "metrics"));
  await writeFile(join(folder, "token"), "a-token\n", { mode: 0o600 });
  receiver = createServer((request, response) => {
    (request.method === "POST" ? alerts : beats).push(request.url!);
    request.resume().on("end", () => response.end());
  });
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  alertUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
afterAll(async () => {
  receiver.close();
  await rm(folder, { recursive: true, force: true });
});
const inside = (name: string) => join(folder, name);

/** Runs a shipped file, as it is but for `--set`. */
async function execute(
  name: string,
  env: Record<string, string>,
  set: readonly string[] = [],
): Promise<Finished> {
  const values = set.flatMap((value) => ["--set", value]);
  const usual = {
    GATEWAY_TOKEN: "a-token",
    MIRROR_TOKEN: "a-token",
    RUN: "alpha-1/none",
    ALERT_URL: alertUrl,
  };
  return await run(["run", shipped(name), ...values], { ...usual, HEARTBEAT_URL: alertUrl, ...env });
}

describe.skipIf(!requires("recordings"))("the pipelines that are shipped, on recorded bars", () => {
  test("archive a night, one run, a mirror and an extract for research", { timeout: 300_000 }, async () => {
    // three days: a week is what real-bars.test.ts archives
    const threeDays = inside("three-days.csv.gz");
    writeFirstBars(btc, 3 * 24 * 60, threeDays);
    const gateway = await simulate(
      "--bars",
      threeDays,
      "--runs",
      "2",
      "--cache",
      inside("cache"),
      "--token-file",
      inside("token"),
    );
    const bars = recordedBars(threeDays).join("\n");
    try {
      const night = [
        `gateway.token.file=${inside("token")}`,
        "gateway.budget.rps=1000",
        "runs.ended_within=30000d",
        `after.exports=[{ tables: [fills, equity], format: duckdb, out: ${inside("week.duckdb")} }]`,
        `metrics.textfile=${inside("metrics/runvault.prom")}`,
      ];
      const env = { GATEWAY_URL: gateway.url, ARCHIVE: inside("archive") };
      const first = await execute("nightly", env, night);
      expect(first.status, first.stderr).toBe(exit.done);
      const [runFile] = await readdir(inside("archive/runs/alpha-1"));
      const runId = runFile!.replace(/\.json$/, "");
      expect((await globbedBars(inside("archive"), runId)).join("\n")).toBe(bars);
      expect(beats).toEqual(["/start", "/"]);
      expect(alerts).toEqual([]);
      const figures = await readFile(inside("metrics/runvault.prom"), "utf8");
      expect(figures).toMatch(/^runvault_job_exit_code\{job="nightly"\} 0$/m);
      const second = await execute("nightly", env, night);
      expect(second.status, second.stderr).toBe(exit.done);
      const status = await run(["status", "--archive", inside("archive"), "--json"]);
      expect(JSON.parse(status.stdout)).toMatchObject({
        jobs: [{ job: "nightly", lastResult: { exit: 0 } }],
      });

      const one = await execute("archive-run", { ...env, ARCHIVE: inside("one") }, [`run=alpha-1/${runId}`]);
      expect(one.status, one.stderr).toBe(exit.done);
      expect(await readdir(inside("one/runs/alpha-1"))).toEqual([runFile]);

      const research = await execute("research-extract", { ...env, RESEARCH: inside("research") }, [
        "runs.ended_within=30000d",
        "gateway.budget.rps=1000",
      ]);
      expect(research.status, research.stderr).toBe(exit.done);
      expect(await countIn(inside("research/month.duckdb"), "equity")).toBe(0n);

      const serve = start(["serve", "--archive", inside("archive"), "--port", "0"]);
      try {
        const mirror = await execute("mirror", {
          MIRROR_FROM: await serve.firstLine(),
          MIRROR: inside("mirror"),
        });
        expect(mirror.status, mirror.stderr).toBe(exit.done);
      } finally {
        serve.child.kill("SIGTERM");
        await serve.finished;
      }
      const diff = await run(["maintain", "diff", inside("archive"), inside("mirror")]);
      expect(diff.status, diff.stdout).toBe(exit.done);
    } finally {
      expect((await gateway.stop()).status).toBe(0);
    }
  });
});

async function countIn(file: string, table: string): Promise<bigint> {
  const duckdb = await DuckDBInstance.create(file, { access_mode: "READ_ONLY" });
  const connection = await duckdb.connect();
  try {
    const [[count]] = (await connection.runAndReadAll(`SELECT count(*) FROM ${table}`)).getRows() as [
      [bigint],
    ];
    return count;
  } finally {
    connection.closeSync();
    duckdb.closeSync();
  }
}
