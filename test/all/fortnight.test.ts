import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { verifyArchive } from "../../src/archive/verify/verify.ts";
import { exit } from "../../src/model/error.ts";
import { nextStarts } from "../../src/pipeline/file/cron.ts";
import { TokenList } from "../../src/serve/auth/token-list.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { archiveSteps, exportSteps, jobSteps } from "../fixtures/command/kill-driver.ts";
import { inProject } from "../fixtures/command/project.ts";
import { FortnightGateway } from "../fixtures/pipeline/fortnight-gateway.ts";
import { executeNight } from "../fixtures/pipeline/night.ts";

const schedule = { cron: "15 2 * * *", timezone: "Europe/Berlin" };
const nights = 14;
const night = inProject("test/fixtures/pipeline/night-process.ts");

/** A message of a night, as chats show it. */
type Sent = readonly [night: number, text: string];

interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** A fortnight of nightly jobs, with a gateway and a receiver of notifications. */
class Fortnight implements AsyncDisposable {
  readonly folder: string;
  readonly gateway: FortnightGateway;
  readonly starts: readonly Date[];
  readonly asked: { readonly night: number; readonly key: string }[] = [];
  readonly sent: Sent[] = [];
  readonly beats: string[] = [];
  readonly statuses: (number | null)[] = [];
  night = 0;
  killed = 0;
  token = "first-token";
  #served: Served | undefined;
  #port = 0;
  #receiver!: Server;

  private constructor(folder: string, first: Date) {
    this.folder = folder;
    this.starts = nextStarts(schedule, nights, first);
    this.gateway = new FortnightGateway(ns(this.starts[0]!));
  }

  static async open(first: string): Promise<Fortnight> {
    const one = new Fortnight(await mkdtemp(join(tmpdir(), "runvault-fortnight-")), new Date(first));
    one.#receiver = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        if (request.method === "POST") one.sent.push([one.night, wordsOf(body)]);
        else one.beats.push(request.url!);
        response.end();
      });
    });
    await new Promise<void>((done) => one.#receiver.listen(0, "127.0.0.1", done));
    await one.serve();
    await one.writeJob();
    return one;
  }

  async serve(): Promise<void> {
    await this.#served?.close();
    this.#served = await serve({
      source: this.gateway,
      host: "127.0.0.1",
      port: this.#port,
      tokens: TokenList.single(this.token),
      onError: () => {},
      onRequest: (entry) => this.#note(entry),
    });
    this.#port = Number(new URL(this.#served.url).port);
  }

  async close(): Promise<void> {
    await this.#served?.close();
    this.#served = undefined;
  }

  /** Takes note of rows that were given whole: those that a run's answer may bring once. */
  #note(entry: RequestLogEntry): void {
    const { table, run, instance, from, limit, ending, rows } = entry as RequestLogEntry &
      Record<string, unknown>;
    if (typeof table !== "string" || ending !== "whole" || Number(rows) === 0 || limit !== undefined) return;
    this.asked.push({ night: this.night, key: `${instance}/${run}/${table} from ${from}` });
  }

  async writeJob(more: object = {}): Promise<void> {
    await writeFile(join(this.folder, "token"), `${this.token}\n`, { mode: 0o600 });
    const job = {
      version: 1,
      name: "nightly",
      gateway: {
        url: `http://127.0.0.1:${this.#port}/api/v1`,
        transport: "rest",
        token: { file: "token" },
        budget: { rps: 10_000, retries: 1 },
        keeps: "4d",
      },
      archive: "archive",
      runs: { instances: ["alpha", "beta"] },
      final_pass: "counts",
      after: { verify: "deep", exports: [{ tables: ["bars"], out: "bars.parquet" }] },
      schedule: { ...schedule, deadline: "5h", catch_up: "20h", grace: "10s" },
      notify: { heartbeat: { url_env: "BEAT" }, webhook: { url_env: "ALERT" } },
      ...more,
    };
    await writeFile(join(this.folder, "nightly.yaml"), JSON.stringify(job));
  }

  /** The next night. */
  begin(index: number): void {
    this.night = index;
    this.gateway.time = ns(this.starts[index]!);
  }

  /** Executes the job once, a minute later each time. In a process where it is killed. */
  async execute(env: Record<string, string> = {}, deadlineMs?: number): Promise<Ended> {
    const { port } = this.#receiver.address() as AddressInfo;
    this.gateway.time += 60_000_000_000n;
    const file = join(this.folder, "nightly.yaml");
    const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
    const all = {
      ...{ PATH, NODE_COMPILE_CACHE },
      ALERT: `http://127.0.0.1:${port}/alert`,
      BEAT: `http://127.0.0.1:${port}`,
      ...env,
    };
    let stderr = "";
    const say = (text: string) => {
      stderr += `${text}\n`;
    };
    const now = this.gateway.time;
    const ended =
      env.RUNVAULT_KILL_AT === undefined
        ? {
            status: await executeNight({ file, now, deadlineMs, env: all, say, print: () => {} }),
            signal: null,
          }
        : await inProcess([night, file, `${now}`], all, say);
    this.statuses.push(ended.status);
    return { ...ended, stderr };
  }

  /** Executes it, and it ends as it should. */
  async expect(status: number, env: Record<string, string> = {}, deadlineMs?: number): Promise<Ended> {
    const ended = await this.execute(env, deadlineMs);
    expect(ended.status, `night ${this.night}: ${ended.stderr}`).toBe(status);
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    this.#receiver.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** How a process ended. */
async function inProcess(args: string[], env: NodeJS.ProcessEnv, say: (text: string) => void) {
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  child.stderr.on("data", (chunk) => say(String(chunk)));
  const [status, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { status, signal };
}

/** A message as chats show it, whenever and wherever it was sent. */
function wordsOf(body: string): string {
  const { text } = JSON.parse(body) as { text: string };
  return text
    .replace(`runvault job nightly on ${hostname()} `, "")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
}

/** All that is sent in a fortnight: what became worse, and what was resolved. */
const messages: readonly Sent[] = [
  [
    4,
    "failed with exit status 3 — worse (1): the job nightly ended with exit status 3: nothing is listening there (ECONNREFUSED)",
  ],
  [
    5,
    "succeeded — resolved (1): the job nightly ended with exit status 3: nothing is listening there (ECONNREFUSED)",
  ],
  [
    6,
    "failed with exit status 8 — worse (1): the job nightly ended with exit status 8: the deadline was reached after 6 s",
  ],
  [
    7,
    "succeeded — resolved (1): the job nightly ended with exit status 8: the deadline was reached after 6 s",
  ],
  [
    11,
    "failed with exit status 4 — worse (3): the job nightly ended with exit status 4; the start of TIME was missed: nothing started the job then; the gateway forgot beta/gone before it was proven",
  ],
  [
    12,
    "failed with exit status 7 — worse (1): the job nightly ended with exit status 7: ENOSPC: no space left on device, write",
  ],
  [
    13,
    "succeeded — resolved (1): the job nightly ended with exit status 7: ENOSPC: no space left on device, write",
  ],
];

const ns = (date: Date) => BigInt(date.getTime()) * 1_000_000n;

test.each([
  ["autumn", "2025-10-19T12:00:00Z"],
  ["spring", "2026-03-22T12:00:00Z"],
])("a fortnight in %s, over the change of clocks", { timeout: 600_000 }, async (season, first) => {
  await using world = await Fortnight.open(first);
  for (let index = 0; index < nights; index++) {
    world.begin(index);
    if (index === 2) {
      // down for an hour
      await world.close();
      const executing = world.expect(exit.done);
      await sleep(1_500);
      await world.serve();
      await executing;
    } else if (index === 4) {
      // down for all of it
      await world.close();
      await world.expect(exit.gateway, {}, 2_000);
      await world.serve();
    } else if (index === 6) {
      // past the deadline
      world.gateway.holding = "held";
      await world.expect(exit.deadline, {}, 6_000);
      world.gateway.letGo();
    } else if (index === 7 && season === "autumn") {
      // killed at every step that a run's archiving has not, and at some of that, with something to do each time
      const ofArchiving = archiveSteps.filter((_, nth) => nth % 5 === 0);
      for (const step of [...jobSteps, ...ofArchiving, ...exportSteps]) {
        world.gateway.add(`killed-${step}`);
        const { status, signal, stderr } = await world.execute({ RUNVAULT_KILL_AT: step });
        expect([0, null], stderr).toContain(status);
        if (status !== null) continue;
        expect(signal).toBe("SIGKILL");
        world.killed++;
      }
      await world.expect(exit.done);
    } else if (index === 9) {
      // a new token, which the gateway knows ahead of the job
      world.token = "second-token";
      await world.serve();
      await world.writeJob();
      await world.execute();
    } else if (index === 10) {
      // a broken job file
      await writeFile(join(world.folder, "nightly.yaml"), "version: 1\nname: [nightly\n");
      await world.expect(exit.usage);
      await world.writeJob();
    } else if (index === 12) {
      // a full disk
      await world.expect(exit.storage, { FULL_AT: "segment-written" });
    } else await world.execute();
  }

  const hasKills = season === "autumn";
  const isOfKills = ([night]: Sent) => hasKills && night === 7;
  expect(world.sent.filter((one) => !isOfKills(one))).toEqual(messages.filter((one) => !isOfKills(one)));
  const died = world.sent
    .filter(isOfKills)
    .flatMap(
      ([, text]) =>
        /worse \((\d+)\): the execution that began at TIME died without a result/.exec(text)?.[1] ?? [],
    );
  // each once, but for those told by an execution that was killed between the telling and its record: they are told again
  const told = died.reduce((sum, count) => sum + Number(count), 0);
  expect(told).toBeGreaterThanOrEqual(world.killed);
  expect(told).toBeLessThanOrEqual(world.killed + 4);
  const beats = world.beats.filter((beat) => beat === "/start").length;
  // all but the broken job file; one that was killed at its very beginning may not have come to it
  expect(beats).toBeLessThanOrEqual(world.statuses.length - 1);
  expect(beats).toBeGreaterThanOrEqual(world.statuses.length - (hasKills ? 3 : 1));
  // rows that are here are not asked for again; what a kill or a full disk took is
  const given = new Map<string, number[]>();
  for (const { night, key } of world.asked) given.set(key, [...(given.get(key) ?? []), night]);
  const twice = [...given].filter(([, at]) => at.length > 1 && !at.includes(7) && !at.includes(12));
  expect(twice).toEqual([]);

  // as one archive that was made in a single go, of all that the gateway ever held finished
  const archive = await openArchive(join(world.folder, "archive"));
  for await (const report of verifyArchive(archive, { deep: true })) expect(report.damaged).toBe(false);
  world.gateway.keepsAll = true;
  await world.writeJob({ archive: "once", notify: {}, after: {} });
  world.night = nights;
  await world.expect(exit.done);
  const once = await openArchive(join(world.folder, "once"));
  const { runs, onlyInA, onlyInB } = await diffArchives(archive, once);
  // one that was deleted before it ended, and was never whole
  expect({ onlyInA, onlyInB }).toEqual({ onlyInA: [{ instanceId: "beta", runId: "gone" }], onlyInB: [] });
  // in what files rows stand depends on how long the run went on when they were fetched
  const isOfFiles = (text: string) => /^(?:grain|buckets): /.test(text);
  const differing = runs.flatMap(({ run, differences, tables }) => [
    ...differences.map((text) => [run.runId, text]),
    ...tables.flatMap(({ table, differences: own }) =>
      own.filter((text) => !isOfFiles(text)).map((text) => [run.runId, table, text]),
    ),
  ]);
  expect(differing).toEqual([]);
});
