import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { loadProfile } from "../../src/gateway/profile/load-profile.ts";
import { Corvid, type CorvidFaults, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { CorvidHttp } from "../fixtures/foreign/corvid/corvid-http.ts";
import { factorsOf, trueFactors } from "../fixtures/foreign/factors-of.ts";
import { judged } from "../fixtures/foreign/foreign-truth.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
let text: string;
let connectProfile: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-rpc-wire-"));
  text = await readFile(corvidProfile, "utf8");
  await cp(join(dirname(corvidProfile), "corvid.binpb"), join(folder, "corvid.binpb"));
  connectProfile = join(folder, "connect.yaml");
  await writeFile(connectProfile, text.replace("protocol: grpc", "protocol: connect"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("unary Connect", () => {
  test("brings by the profile what gRPC brings", async () => {
    await using gateway = await CorvidHttp.open();
    const { lines, code } = await factorsOf(gateway.url, { token: "t0" }, connectProfile);
    expect([code, lines]).toEqual(["", trueFactors(gateway.corvid)]);
    expect(gateway.headers[0]).toMatchObject({
      authorization: "Bearer t0",
      "connect-protocol-version": "1",
      "content-type": "application/proto",
    });
    await using opened = openGateway(
      { baseUrl: gateway.url, profile: await loadProfile(connectProfile), retry: quickRetry() },
      "auto",
    );
    expect((await opened.instances()).map(({ instanceId }) => instanceId)).toEqual(["north", "south"]);
    expect(await opened.runs("north")).toHaveLength(2);
    expect((await opened.facts(judged, {}))?.get("factors")?.rows).toBe(BigInt(lines.length));
    expect(JSON.parse(Buffer.from((await opened.document(judged, "summary"))!).toString())).toMatchObject({
      id: judged.runId,
    });
    expect(gateway.asked.every((asked) => asked.startsWith("POST /corvid.tape.v1.Tape/"))).toBe(true);
  });

  test("with gRPC's profile is no gateway's, and gRPC with Connect's neither", async () => {
    await using gateway = await CorvidHttp.open();
    expect((await factorsOf(gateway.url)).code).toBe("not_a_gateway");
    const { code } = await factorsOf(gateway.corvid.url, {}, connectProfile);
    expect(code).toMatch(/^(not_a_gateway|unreachable)$/);
  });
});

/** What ends both protocols' answers, and by what code. */
const broken: readonly (readonly [ends: NonNullable<CorvidFaults["ends"]>, code: string])[] = [
  ["silent ahead of headers", "timeout"],
  ["silent in the message", "timeout"],
  ["cut", "stream_cut"],
];
const ofGrpc: typeof broken = [
  ["silent ahead of trailers", "timeout"],
  ["reset ahead of trailers", "stream_cut"],
  ["died ahead of trailers", "stream_cut"],
];
const cases = [
  ...[...broken, ...ofGrpc].map(([ends, code]) => ({ protocol: "gRPC", ends, code })),
  // silence in a message is for whoever reads HTTP/1.1 to notice, as over REST
  ...broken
    .filter(([ends]) => ends !== "silent in the message")
    .map(([ends, code]) => ({ protocol: "Connect", ends, code })),
];

test.each(cases)("$protocol: pages that are $ends give $code, or come on the next attempt", async (one) => {
  const { protocol, ends, code } = one;
  const limits = { headersTimeoutMs: 600, bodyIdleTimeoutMs: 600 };
  const [server, file] = protocol === "gRPC" ? [Corvid, corvidProfile] : [CorvidHttp, connectProfile];
  await using always = await server.open({ ends });
  const failed = await factorsOf(always.url, limits, file);
  expect([failed.code, failed.lines.length]).toEqual([code, 10]);
  await using once = await server.open({ ends, times: "once" });
  const { lines, code: none } = await factorsOf(once.url, { ...limits, retry: quickRetry() }, file);
  const corvid = once instanceof Corvid ? once : once.corvid;
  expect([none, lines]).toEqual(["", trueFactors(corvid)]);
});

test.each(["headers", "trailers"] as const)(
  "a token that gRPC refuses in its %s is asked for again, and the refusal stands where there is no other",
  async (refused) => {
    await using corvid = await Corvid.open({ bearer: { token: "evening", refused } });
    let renewed = 0;
    const renewToken = async () => {
      renewed++;
      return "morning";
    };
    const options = { token: "evening", renewToken };
    await using gateway = openGateway(
      {
        ...options,
        baseUrl: corvid.url,
        profile: await loadProfile(corvidProfile),
        retry: quickRetry({ retries: 0 }),
      },
      "auto",
    );
    await gateway.instances();
    expect(renewed).toBe(0);
    corvid.faults = { bearer: { token: "morning", refused } };
    const both = await Promise.all([gateway.instances(), gateway.runs("north")]);
    expect([renewed, both.map((list) => list?.length)]).toEqual([1, [2, 2]]);
    const { lines } = await factorsOf(corvid.url, options);
    expect(lines).toEqual(trueFactors(corvid));
    expect(
      await factorsOf(corvid.url, { token: "evening", renewToken: async () => "evening" }),
    ).toMatchObject({
      lines: [],
      code: "unauthenticated",
    });
  },
);

test("a token that Connect refuses is asked for again", async () => {
  await using gateway = await CorvidHttp.open({ bearer: { token: "morning", refused: "headers" } });
  const options = { token: "evening", renewToken: async () => "morning" };
  const { lines } = await factorsOf(gateway.url, options, connectProfile);
  expect(lines).toEqual(trueFactors(gateway.corvid));
});

test("facts over RPC are of no window that the unit of their bounds cannot say", async () => {
  const profile = await loadProfile(connectProfile);
  const { facts } = profile.rpc!.documents;
  const inMs = { ...facts!, times: { ...facts!.times, unit: "ms" as const } };
  const rpc = { ...profile.rpc!, documents: { ...profile.rpc!.documents, facts: inMs } };
  await using server = await CorvidHttp.open();
  await using gateway = openGateway(
    { baseUrl: server.url, profile: { ...profile, rpc }, retry: quickRetry() },
    "auto",
  );
  expect(await gateway.facts(judged, { from: 1n })).toBe(null);
  expect(server.asked).toEqual([]);
});

test.each(["circle", "spiral"] as const)(
  "tokens that lead in a %s are cut behind the last new page",
  async (tokens) => {
    await using corvid = await Corvid.open({ tokens });
    const { lines, code, message } = await factorsOf(corvid.url);
    expect([code, message]).toEqual(["stream_cut", expect.stringMatching(/are inconsistent/)]);
    expect(lines).toEqual(trueFactors(corvid).slice(0, 40));
  },
);

test.each([
  ["straight from the wire", "  factors:\n", "ns"],
  ["by way of JSON", "  factors:\n    fields: freeze\n", "us"],
])("times in a wrong unit are told ahead of the first row, %s", async (_way, head, unit) => {
  const file = join(folder, `wrong-${unit}.yaml`);
  const wrong = text
    .replace("  factors:\n    columns", `${head}    columns`)
    .replace("ts_event: at_ns", `ts_event: { from: at_ns, unit: ${unit} }`);
  await writeFile(file, wrong);
  await using corvid = await Corvid.open({ inMilliseconds: true });
  expect(await factorsOf(corvid.url, {}, file)).toEqual({
    lines: [],
    code: "malformed_row",
    message: expect.stringMatching(
      new RegExp(`ts_event of the first row is 1970-\\S+ in ${unit}, but 2026-01-05\\S+ in ms`),
    ),
  });
});
