import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { loadProfile } from "../../src/gateway/profile/load-profile.ts";
import type { TransportChoice } from "../../src/gateway/transport-choice.ts";
import { corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { CorvidHttp, type CorvidHttpFaults } from "../fixtures/foreign/corvid/corvid-http.ts";
import { factorsOf, trueFactors } from "../fixtures/foreign/factors-of.ts";
import { judged } from "../fixtures/foreign/foreign-truth.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
let text: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-both-"));
  // trades by Connect, signals by a route whose rows do not say whose they are
  const overRpc = (await readFile(corvidProfile, "utf8")).replace("protocol: grpc", "protocol: connect");
  const begin = overRpc.indexOf("    factors:\n");
  const end = overRpc.indexOf("  errors:");
  text = `${overRpc.slice(0, begin)}${overRpc.slice(end)}`
    .replace(
      "      run_id: session\n      instance_id: desk\n",
      "      run_id: run\n      instance_id: instance\n",
    )
    .replace(
      "  factors:\n",
      "  factors:\n    path: /signals\n    parameters: { instance: desk, run: session, from: since, to: until, limit: most }\n",
    );
  await cp(join(dirname(corvidProfile), "corvid.binpb"), join(folder, "corvid.binpb"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let profiles = 0;
async function profileOf(...changes: (readonly [part: string, by: string])[]): Promise<string> {
  let changed = text;
  for (const [part, by] of changes) {
    expect(changed.split(part).length).toBe(2);
    changed = changed.replace(part, by);
  }
  const file = join(folder, `${++profiles}.yaml`);
  await writeFile(file, changed);
  return file;
}

async function opened(file: string, transport: TransportChoice = "auto", faults: CorvidHttpFaults = {}) {
  const server = await CorvidHttp.open(faults);
  const gateway = openGateway(
    { baseUrl: server.url, profile: await loadProfile(file), retry: quickRetry({ retries: 0 }) },
    transport,
  );
  return {
    server,
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function drained(gateway: Gateway, table: "fills" | "factors"): Promise<void> {
  for await (const _ of gateway.rows({ ...judged, table }));
}

test("each table goes where its profile has it, and traits tell of that way", async () => {
  await using both = await opened(await profileOf());
  const { gateway, server } = both;
  expect(gateway.described).toEqual({ tables: ["fills", "factors"], none: [], by: "corvid" });
  expect(gateway.traits?.("fills")).toMatchObject({ pages: "cursor", filters: ["symbol"] });
  expect(gateway.traits?.("factors")).toMatchObject({ pages: "none", filters: [], namesRun: false });
  for (const [table, path] of [
    ["fills", "POST /corvid.tape.v1.Tape/ListTrades"],
    ["factors", "GET /signals"],
  ] as const) {
    server.asked.length = 0;
    const parts: Uint8Array[] = [];
    for await (const chunk of gateway.rows({ ...judged, table })) parts.push(chunk);
    expect(Buffer.concat(parts).length).toBeGreaterThan(0);
    expect(server.asked.filter((asked) => !/List(Desks|Sessions)$/.test(asked))).toContain(path);
    expect(new Set(server.asked.filter((asked) => /Trades|signals/.test(asked)))).toEqual(new Set([path]));
  }
  const { lines, code } = await factorsOf(server.url, {}, await profileOf());
  expect([code, lines]).toEqual(["", trueFactors(server.corvid)]);
});

test("lists, facts and documents come from the side that has them", async () => {
  await using both = await opened(await profileOf());
  const { gateway } = both;
  expect((await gateway.instances()).map(({ instanceId }) => instanceId)).toEqual(["north", "south"]);
  expect(await gateway.runs("north")).toHaveLength(2);
  expect((await gateway.facts(judged, {}))?.get("fills")?.rows).toBe(40n);
  expect(await gateway.otherFacts?.(judged, {})).toBeNull();
  expect(JSON.parse(Buffer.from((await gateway.document(judged, "summary"))!).toString())).toMatchObject({
    id: judged.runId,
  });
  expect(await gateway.document(judged, "resources")).toBeNull();
});

test("instances that one side gives by name stand beside those that the other lists", async () => {
  const list =
    "    instances: { method: corvid.tape.v1.Tape.ListDesks, list: desks, id: name, runs: sessions }\n";
  const named = "documents: { given: { north: [late], east: [dawn] } }\n";
  await using listed = await opened(
    await profileOf(["tables:\n  fills:\n    columns", `${named}tables:\n  fills:\n    columns`]),
  );
  expect(await listed.gateway.instances()).toEqual([
    { instanceId: "north", runIds: ["2026-01-05", "2026-01-05b", "late"] },
    { instanceId: "south", runIds: ["2026-01-05", "2026-01-05b"] },
    { instanceId: "east", runIds: ["dawn"] },
  ]);
  await using given = await opened(await profileOf([list, "    given: { west: [noon] }\n"]));
  expect(await given.gateway.instances()).toEqual([{ instanceId: "west", runIds: ["noon"] }]);
});

test("runs of like names that only the other side lists are told apart", async () => {
  await using loose = await opened(await profileOf(), "auto", { takesBeginnings: true });
  await expect(drained(loose.gateway, "factors")).rejects.toMatchObject({
    code: "not_filtered",
    message: expect.stringMatching(/ignores session/),
  });
});

test("a transport that is asked for alone has the tables of its own", async () => {
  for (const [transport, table, other] of [
    ["rpc", "fills", "factors"],
    ["rest", "factors", "fills"],
  ] as const) {
    await using one = await opened(await profileOf(), transport);
    expect(one.gateway.described?.tables).toEqual([table]);
    await expect(drained(one.gateway, other)).rejects.toMatchObject({
      code: "route_not_found",
    });
  }
});

test("a transport that the profile does not describe is refused by name", async () => {
  await expect(opened(corvidProfile, "rest")).rejects.toMatchObject({
    code: "invalid_argument",
    message: "the profile corvid describes no REST",
  });
});
