import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HistoryService } from "../../../src/gen/example/history/v1/history_service_pb.ts";
import { tokenLine } from "../../../src/serve/auth/token-list.ts";
import {
  HealthWatch,
  openFilesOf,
  peakMibOf,
  processorSecondsOf,
} from "../../fixtures/attack/attacked-server.ts";
import type { AttackedWorld } from "../../fixtures/attack/request-draft.ts";
import { type HostileRequest, hostileRequest } from "../../fixtures/attack/requests.ts";
import { type Outcome, sendRequest } from "../../fixtures/attack/send-request.ts";
import { type Running, start } from "../../fixtures/command/command-process.ts";
import { HostileTarget, leaksIn, targetRun } from "../../fixtures/served/hostile-target.ts";
import { transportTo } from "../../fixtures/served/rpc-clients.ts";
import { trialCount, trialSeed } from "../../fixtures/trials/trials.ts";

/** So many to the archive, and as many to the simulator. */
const size = trialCount(300);
const ahead = 8;
const longestMs = 30_000;
/** Of the server's memory at its peak: its code, DuckDB's threads, and what a few answers hold. */
const mostMib = 700;
/** More at the peak of the second half than at that of the first: what its allocators happen to keep. */
const mostMoreMib = 100;

const token = "t0ken-that-must-n0t-be-t0ld-to-anyb0dy";
const headers = { authorization: `Bearer ${token}` };

let archive: HostileTarget;
let simulator: Running;
let simulatorUrl: string;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-attack-"));
  archive = await HostileTarget.open({
    prepare: async (dir) => {
      const [tokens, key] = [join(dir, "tokens"), join(dir, "key")];
      await writeFile(tokens, tokenLine(token, "desk", ["*"]), { mode: 0o600 });
      // always the same, so that a request is the same when it is repeated
      await writeFile(key, "k".repeat(40), { mode: 0o600 });
      return ["--tokens", tokens, "--page-key-file", key, "--access-log", join(dir, "access")];
    },
  });
  archive.headers = headers;
  const world = ["--instances", "2", "--rows", "1500", "--growing", "--clock", "2024-01-01T01:00:00Z*1"];
  const files = ["--cache", join(folder, "worlds"), "--request-log", join(folder, "access"), "--port", "0"];
  await writeFile(join(folder, "key"), "s".repeat(40), { mode: 0o600 });
  simulator = start(["simulate", ...world, ...files, "--page-key-file", join(folder, "key")]);
  simulatorUrl = await simulator.firstLine();
});
afterAll(async () => {
  simulator.child.kill();
  await simulator.finished;
  await archive[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

test("serve over an archive, asked by whoever means no good", async () => {
  const tokens = await tokensOf(archive.url, targetRun, headers);
  const instances = [targetRun.instanceId, "beta"];
  const files = (await Promise.all(["fills", "orders"].map(filesOf))).flat();
  expect(files.length).toBeGreaterThan(2);
  const world = {
    instances,
    runs: [targetRun.runId],
    keys: ["k"],
    files,
    pageTokens: [...tokens, "AAAA"],
    token,
  };
  const told = await attack({ server: archive.running, url: archive.url, world, folder: archive.folder });
  expect(await archive.trouble()).toBe("");
  const { status, stderr } = await archive.stop();
  expect(status).toBe(0);
  expect(logFaults(stderr)).toEqual([]);
  expect(logFaults(await readFile(join(archive.folder, "access"), "utf8"))).toEqual([]);
  tell("serve", told);
}, 3_600_000);

test("simulate, with its WebSockets and its lifecycle, asked by whoever means no good", async () => {
  // biome-ignore lint/suspicious/noExplicitAny: documents of the interface
  const ask = async (path: string): Promise<any> => (await fetch(`${simulatorUrl}${path}`)).json();
  const { instances: all } = await ask("/history/instances");
  const instances: string[] = all.map((one: { instance_id: string }) => one.instance_id);
  const runs: string[] = all.flatMap((one: { run_ids: string[] }) => one.run_ids);
  const { resources } = await ask(`/runtime/resources?instance=${instances[0]}`);
  const keys = resources.map((one: { resourceKey: string }) => one.resourceKey);
  const tokens = await tokensOf(simulatorUrl, { instanceId: instances[0]!, runId: runs[0]! }, {});
  const files = [`/files/fills/${instances[0]}/${runs[0]}/all-g1-0-0123456789abcdef.parquet`];
  const world = { instances, runs, keys, files, pageTokens: [...tokens, "AAAA"], token: undefined };
  const told = await attack({ server: simulator, url: simulatorUrl, world, folder });
  simulator.child.kill("SIGTERM");
  const { status, stderr } = await simulator.finished;
  expect(status).toBe(0);
  expect(logFaults(stderr)).toEqual([]);
  expect(logFaults(await readFile(join(folder, "access"), "utf8"))).toEqual([]);
  tell("simulate", told);
}, 3_600_000);

interface Attacked {
  readonly server: Running;
  readonly url: string;
  readonly world: AttackedWorld;
  readonly folder: string;
}

/** Sends half of all requests, and holds everything that must be so meanwhile and after. */
async function attack({ server, url, world, folder }: Attacked): Promise<Record<string, unknown>> {
  const port = Number(new URL(url).port);
  const pid = server.child.pid!;
  const credentials = world.token === undefined ? {} : headers;
  const statuses = new Map<number, number>();
  const faults: string[] = [];
  const underWay = new Map<number, string>();
  // whatever it ends by, it says why
  void server.finished.then(({ status, stderr }) => {
    faults.push(`ended with ${status}: ${stderr.slice(-3000)}\nunder way: ${JSON.stringify([...underWay])}`);
  });
  const send = async (n: number) => {
    const hostile = hostileRequest(String(trialSeed), n, world);
    underWay.set(n, hostile.told.slice(0, 300));
    const outcome = await sendRequest(hostile, port, longestMs);
    underWay.delete(n);
    for (const status of outcome.statuses) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    for (const fault of faultsOf(hostile, outcome, folder)) {
      faults.push(`request ${n} of seed ${trialSeed}: ${fault}\n${hostile.told.slice(0, 300)}`);
    }
  };
  const half = async (from: number, to: number) => {
    let next = from;
    const one = async () => {
      while (next < to && faults.length < 10) await send(next++);
    };
    await Promise.all(Array.from({ length: ahead }, one));
  };
  await using watch = new HealthWatch(port, credentials);
  // what the first of its kind loads stays: it is no growth
  await half(0, 50);
  const files = openFilesOf(pid);
  await half(0, Math.ceil(size / 2));
  expect(faults, faults.join("\n\n")).toEqual([]);
  const halfMib = peakMibOf(pid);
  await half(Math.ceil(size / 2), size);
  expect(faults, faults.join("\n\n")).toEqual([]);
  const mib = peakMibOf(pid);
  expect(server.child.exitCode).toBe(null);
  // every client has gone; what said too little to be answered may stay for the 20 s that a head has
  await expect.poll(() => openFilesOf(pid), { timeout: 25_000 }).toBeLessThanOrEqual(files + 2);
  await watch[Symbol.asyncDispose]();
  const { failed, slowestMs } = watch;
  // three seconds, and as many times that as the machine has more to do than processors
  const mostMs = 3000 * Math.max(1, loadavg()[0]! / availableParallelism());
  expect({ failed, isSlow: slowestMs > mostMs }, `${slowestMs} ms`).toEqual({ failed: 0, isSlow: false });
  expect(mib).toBeLessThan(mostMib);
  expect(mib - halfMib).toBeLessThan(mostMoreMib);
  const seconds = processorSecondsOf(pid);
  return {
    size,
    statuses: Object.fromEntries([...statuses].sort()),
    slowestMs,
    halfMib,
    mib,
    files,
    seconds,
  };
}

/** What the interface has answers for. */
const documented = [
  ...[
    100, 101, 200, 202, 206, 304, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 415, 416, 417, 421, 429,
    431,
  ],
  499,
];

/** And over Connect, by its own table: what it does not have here, and a deadline that the client gave. */
const documentedOfConnect: Readonly<Record<number, string>> = {
  501: "unimplemented",
  504: "deadline_exceeded",
};

function faultsOf({ plane }: HostileRequest, outcome: Outcome, folder: string): string[] {
  const { hangs, statuses, text } = outcome;
  const isDocumented = (status: number) =>
    documented.includes(status) ||
    (plane === "rpc" && text.includes(`{"code":"${documentedOfConnect[status]}"`));
  // files of Parquet say by what they were written; heads of HTTP/2 are packed, so that their type is not to be read there
  const isParquet = /application\/vnd\.apache\.parquet|PAR1/.test(text);
  const said = isParquet ? text.replaceAll("DuckDB", "") : text;
  const leaks = [...leaksIn(said, folder), ...(text.includes(token) ? ["the token"] : [])];
  return [
    ...leaks.map((leak) => `tells ${leak}`),
    ...(hangs ? [`no answer within ${longestMs} ms`] : []),
    ...statuses.filter((status) => !isDocumented(status)).map((status) => `${plane}: status ${status}`),
  ].map((fault) => `${fault}: ${JSON.stringify(text.slice(0, 1500))}`);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unseen = /[\u0000-\u001f\u007f-\u009f\u202e]/;
const ours = /^\s+at |"level":"(?:warn|error)"|\b(?:warn|error): |bug in runvault|Warning:/;

/** Lines of a log that should not be there. */
function logFaults(text: string): string[] {
  const faults = text
    .split("\n")
    .filter((line) => unseen.test(line) || ours.test(line) || line.includes(token));
  return faults.map((line) => line.slice(0, 2000)).slice(0, 5);
}

/** Paths of a table's files, below the base address. */
async function filesOf(table: string): Promise<string[]> {
  const list = await fetch(`${archive.url}/files/${table}`, {
    headers: { ...headers, accept: "text/plain" },
  });
  const urls = (await list.text()).split("\n").filter((url) => url !== "");
  return urls.map((url) => url.slice(archive.url.length));
}

/** Page tokens of a few listings. */
async function tokensOf(
  url: string,
  run: { instanceId: string; runId: string },
  headers: Record<string, string>,
): Promise<string[]> {
  const client = createClient(HistoryService, transportTo({ url }, { headers }));
  const listings = ["fills", "orders", "bars"].flatMap((table) => [
    { table, selection: run, pageSize: 1 },
    { table, selection: { ...run, from: 1n }, pageSize: 2 },
  ]);
  const pages = await Promise.all(listings.map((listing) => client.previewTable(listing)));
  return pages.map(({ nextPageToken }) => nextPageToken);
}

/** Prints what came of it, where all of it was asked for. */
function tell(what: string, figures: Record<string, unknown>): void {
  if (process.env.ATTACK_TELL !== undefined) console.log(what, JSON.stringify(figures));
}
