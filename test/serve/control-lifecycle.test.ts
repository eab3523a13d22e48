import { expect, test } from "vitest";
import { healthOf, instanceStateOf } from "../../src/model/instance-state.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { LiveWorld, minute, second } from "../fixtures/served/live-world.ts";

const statesOf = async (world: LiveWorld): Promise<string[]> => {
  const { desiredState, processState, runtimeState, instanceState } = (
    await world.ask(`/instances/${world.run.instanceId}`)
  ).json();
  return [desiredState, processState, runtimeState, instanceState];
};
const codeOf = (answer: { status: number; json(): { error: { code: string } } }) => [
  answer.status,
  answer.json().error.code,
];
const settled = (state: string) => [state, state, state, state];

test("a stop is accepted at once and shows as the clock gets there; the run ends with it", async () => {
  await using world = await LiveWorld.open();
  expect(await statesOf(world)).toEqual(settled("RUNNING"));
  const answer = await world.post("/instances/alpha-1/stop");
  expect([answer.status, answer.json()]).toEqual([
    202,
    { instanceId: "alpha-1", action: "stop", accepted: true },
  ]);
  expect(await statesOf(world)).toEqual(["STOPPED", "RUNNING", "RUNNING", "DEGRADED"]);
  world.pass(second);
  expect(await statesOf(world)).toEqual(["STOPPED", "RUNNING", "STOPPED", "DEGRADED"]);
  expect(codeOf(await world.post("/instances/alpha-1/start"))).toEqual([409, "ERROR_CODE_STATE_CONFLICT"]);
  world.pass(second);
  expect(await statesOf(world)).toEqual(settled("STOPPED"));

  const [run] = (await world.simulator.runs("alpha-1"))!;
  expect(run).toMatchObject({ status: "FINISHED", final: true, ended: world.now - second });
  const facts = (await world.simulator.facts(world.run, {}))!;
  world.pass(600n * minute);
  expect(await world.simulator.facts(world.run, {})).toEqual(facts);
  expect(facts.get("bars")!.rows).toBeGreaterThan(0n);
  expect(facts.get("bars")!.last).toBeLessThanOrEqual(run!.ended!);
  expect(codeOf(await world.post("/instances/alpha-1/stop"))).toEqual([409, "ERROR_CODE_STATE_CONFLICT"]);
});

test("a restart stops the run and begins a new one, with rows of its own from then on", async () => {
  await using world = await LiveWorld.open();
  expect((await world.post("/instances/alpha-1/restart")).json().action).toBe("restart");
  const seen: string[][] = [];
  for (let passed = 0; passed <= 5; passed += 1) {
    seen.push(await statesOf(world));
    world.pass(second);
  }
  expect(seen).toEqual([
    settled("RUNNING"),
    ["RUNNING", "RUNNING", "STOPPED", "DEGRADED"],
    ["RUNNING", "STOPPED", "STOPPED", "DEGRADED"],
    ["RUNNING", "RUNNING", "STOPPED", "DEGRADED"],
    ["RUNNING", "RUNNING", "STOPPED", "DEGRADED"],
    settled("RUNNING"),
  ]);
  const { currentRunId } = (await world.ask("/instances/alpha-1")).json();
  expect(currentRunId).toMatch(/^2024-01-01-002$/);
  const began = world.now - second;
  expect((await world.simulator.runs("alpha-1"))!.map(({ runId, status }) => [runId, status])).toEqual([
    [world.run.runId, "FINISHED"],
    [currentRunId, "RUNNING"],
  ]);
  world.pass(30n * minute);
  const facts = (await world.simulator.facts({ instanceId: "alpha-1", runId: currentRunId }, {}))!;
  expect(facts.get("bars")!.rows).toBe(30n);
  expect(facts.get("events")!.first).toBe(began);
  const bars = await world.ask(`/history/bars?instance=alpha-1&run_id=${currentRunId}`);
  expect(bars.text.trim().split("\n")).toHaveLength(30);
  expect((await world.ask("/history/instances")).json().instances[0].latest_run_id).toBe(currentRunId);
});

test("the same actions at the same times give the same rows", async () => {
  const texts: string[] = [];
  for (let round = 0; round < 2; round += 1) {
    await using world = await LiveWorld.open();
    await world.post("/instances/alpha-1/restart");
    world.pass(20n * minute);
    const run = (await world.ask("/instances/alpha-1")).json().currentRunId;
    for (const name of tableNames) {
      const path = { order_book: "order-book", equity: "portfolio/equity", metrics: "portfolio/metrics" };
      const at = Object.hasOwn(path, name) ? path[name as keyof typeof path] : name;
      texts.push((await world.ask(`/history/${at}?instance=alpha-1&run_id=${run}`)).text);
    }
  }
  expect(texts.slice(0, tableNames.length)).toEqual(texts.slice(tableNames.length));
  expect(texts.join("").length).toBeGreaterThan(10_000);
});

test("a finished instance starts again, and a run left alone ends by itself", async () => {
  await using world = await LiveWorld.open({ growing: false });
  expect(await statesOf(world)).toEqual(settled("STOPPED"));
  expect(codeOf(await world.post("/instances/alpha-1/stop"))).toEqual([409, "ERROR_CODE_STATE_CONFLICT"]);
  const answers = await Promise.all([
    world.post("/instances/alpha-1/start"),
    world.post("/instances/alpha-1/start"),
  ]);
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
  expect(await statesOf(world)).toEqual(["RUNNING", "STOPPED", "STOPPED", "DEGRADED"]);
  world.pass(3n * second);
  expect(await statesOf(world)).toEqual(settled("RUNNING"));
  expect(codeOf(await world.post("/instances/alpha-1/start"))).toEqual([409, "ERROR_CODE_STATE_CONFLICT"]);
  world.pass(2000n * minute);
  expect(await statesOf(world)).toEqual(settled("STOPPED"));
  expect((await world.simulator.runs("alpha-1"))!.at(-1)).toMatchObject({ status: "FINISHED", final: true });
});

test("start-fails: the process comes up and crashes, no run begins, and the next start gets past it", async () => {
  await using world = await LiveWorld.open({ faultTexts: ["start-fails@alpha-1"] });
  expect((await world.post("/instances/alpha-1/restart")).status).toBe(202);
  world.pass(4n * second);
  expect(await statesOf(world)).toEqual(["RUNNING", "CRASHED", "FAILED", "FAILED"]);
  expect((await world.ask("/instances/alpha-1/health")).json()).toEqual({
    instanceId: "alpha-1",
    classification: "FAILED",
    reasons: ["the process crashed", "the runtime failed"],
  });
  expect((await world.ask("/runtime/status?instance=alpha-1")).json().capabilityErrors).toContainEqual({
    capability: "accounts",
    reason: "FAILED",
    message: "the runtime failed",
  });
  expect((await world.simulator.runs("alpha-1"))!).toHaveLength(1);
  expect((await world.post("/instances/alpha-1/start")).status).toBe(202);
  world.pass(3n * second);
  expect(await statesOf(world)).toEqual(settled("RUNNING"));
});

test("stop-hangs: what is meant to stop goes on, until a stop gets through", async () => {
  await using world = await LiveWorld.open({ faultTexts: ["stop-hangs@*"] });
  expect((await world.post("/instances/alpha-1/stop")).status).toBe(202);
  world.pass(10n * minute);
  expect(await statesOf(world)).toEqual(["STOPPED", "RUNNING", "RUNNING", "DEGRADED"]);
  expect((await world.ask("/instances/alpha-1/health")).json()).toMatchObject({
    classification: "DEGRADED",
    reasons: ["the process is RUNNING but should be STOPPED", "the runtime is RUNNING but should be STOPPED"],
  });
  expect((await world.simulator.runs("alpha-1"))![0]).toMatchObject({ status: "RUNNING", final: false });
  expect((await world.ask("/instances/alpha-1/logs?tail=1")).text).toContain("does not stop");
  expect((await world.post("/instances/alpha-1/stop")).status).toBe(202);
  world.pass(2n * second);
  expect(await statesOf(world)).toEqual(settled("STOPPED"));
});

test("runtime-unreachable: the state is unknown, what the runtime would answer is 502, history goes on", async () => {
  await using world = await LiveWorld.open({ faultTexts: ["runtime-unreachable@alpha-1"] });
  expect(await statesOf(world)).toEqual(["RUNNING", "RUNNING", "UNKNOWN", "DEGRADED"]);
  expect((await world.ask("/instances/alpha-1")).json().endpoints).toMatchObject({
    runtime: false,
    websocket: false,
  });
  expect((await world.ask("/instances/alpha-1/health")).json()).toMatchObject({
    classification: "UNKNOWN",
    reasons: ["the runtime cannot be reached"],
  });
  const status = (await world.ask("/runtime/status?instance=alpha-1")).json();
  expect(status).toMatchObject({
    transport: { connected: false, tsLastSeen: "0" },
    engine: { state: "UNKNOWN" },
    capabilities: { resources: false, subscriptions: false, accounts: false, history: true, lifecycle: true },
  });
  expect(status.capabilityErrors).toContainEqual({
    capability: "resources",
    reason: "UNREACHABLE",
    message: "the runtime cannot be reached",
  });
  for (const path of [
    "/runtime/resources?instance=alpha-1",
    "/runtime/query/accounts?instance=alpha-1",
    "/runtime/query/resources?instance=alpha-1",
    "/instances/alpha-1/ws",
    "/metrics/instances/9100",
  ]) {
    const answer = await world.ask(path);
    expect([path, ...codeOf(answer), answer.json().error.upstreamCode]).toEqual([
      path,
      502,
      "ERROR_CODE_UPSTREAM_UNREACHABLE",
      "unreachable",
    ]);
  }
  expect((await world.ask("/history/bars?instance=alpha-1")).status).toBe(200);
});

test("daemon-unreachable: doctor and lifecycle fail, the inventory is as last known", async () => {
  await using world = await LiveWorld.open({ faultTexts: ["daemon-unreachable@*"] });
  const doctor = await world.ask("/doctor");
  expect([doctor.status, doctor.json()]).toMatchObject([
    502,
    {
      ok: false,
      checks: [{ name: "control_plane", ok: false, message: "the daemon cannot be reached" }, { ok: true }],
    },
  ]);
  expect((await world.ask("/instances")).json()).toMatchObject({
    daemon: { reachable: false, version: "", message: "the daemon cannot be reached" },
    instances: [{ instanceId: "alpha-1", processState: "RUNNING" }],
  });
  for (const answer of [
    await world.post("/instances/alpha-1/stop"),
    await world.ask("/instances/alpha-1/logs"),
    await world.ask("/instances/alpha-1/logs?follow=true"),
  ]) {
    expect(codeOf(answer)).toEqual([502, "ERROR_CODE_UPSTREAM_UNREACHABLE"]);
  }
  expect((await world.ask("/runtime/status?instance=alpha-1")).json()).toMatchObject({
    capabilities: { lifecycle: false, logs: false, accounts: true },
    capabilityErrors: [
      { capability: "lifecycle", reason: "UNREACHABLE" },
      { capability: "logs", reason: "UNREACHABLE" },
    ],
  });
});

test("capability-fails: the flag is false with its reason, and the route fails as the instance does", async () => {
  await using world = await LiveWorld.open({ faultTexts: ["capability-fails@alpha-1:accounts"] });
  expect((await world.ask("/runtime/status?instance=alpha-1")).json()).toMatchObject({
    capabilities: { accounts: false, portfolios: true },
    capabilityErrors: [
      { capability: "accounts", reason: "FAILED", message: "accounts failed in the runtime" },
    ],
  });
  expect(codeOf(await world.ask("/runtime/query/accounts?instance=alpha-1"))).toEqual([
    502,
    "ERROR_CODE_UPSTREAM_FAILED",
  ]);
  expect((await world.ask("/runtime/query/portfolios?instance=alpha-1")).status).toBe(200);
});

test("a log tells what was asked and what came of it, in the order of time", async () => {
  await using world = await LiveWorld.open();
  await world.post("/instances/alpha-1/restart");
  world.pass(minute);
  const lines = (await world.ask("/instances/alpha-1/logs?tail=10000")).text.trim().split("\n");
  const times = lines.map((line) => line.slice(0, 30));
  expect(times).toEqual([...times].sort());
  const texts = lines.map((line) => line.slice(31));
  expect(texts).toEqual(expect.arrayContaining(["INFO runtime.started strategy ma-crossover started"]));
  const asked = texts.filter((text) => / (restart|run|process) /.test(text));
  expect(asked).toEqual([
    "INFO restart accepted",
    `INFO run ${world.run.runId} stopped`,
    "INFO process stopped",
    "INFO process started",
    "INFO run 2024-01-01-002 began",
  ]);
  expect((await world.ask("/instances/alpha-1/logs?tail=3")).text.trim().split("\n")).toEqual(
    lines.slice(-3),
  );
});

test.each([
  ["start-failz@alpha-1", /form KIND@INSTANCE/],
  ["start-fails@", /form KIND@INSTANCE/],
  ["start-fails@alpha-1:accounts", /must have the form start-fails@INSTANCE/],
  ["start-fails@alpha-1*0", /TIMES must be at least 1/],
  ["capability-fails@alpha-1", /must have the form/],
  ["capability-fails@alpha-1:account", /no capability account/],
  ["runtime-unreachable@alpha-1*2", /takes no TIMES/],
  ["daemon-unreachable@alpha-1", /one daemon/],
  ["start-fails@alpha-7", /no instance alpha-7/],
])("the fault %s is refused", async (text, why) => {
  await expect(LiveWorld.open({ rows: 100, faultTexts: [text] })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(why),
  });
});

test("an instance is healthy where its states agree, and its own failure outranks what is unknown", () => {
  const facts = {
    instanceId: "a",
    project: { name: "p", version: "1" },
    runtimeAnswers: true,
    takesSubscriptions: true,
    currentRunId: "",
    metricsPort: 0,
  };
  const seen = (["RUNNING", "STOPPED"] as const).flatMap((desiredState) =>
    (["RUNNING", "STOPPED", "CRASHED"] as const).flatMap((processState) =>
      (["RUNNING", "STOPPED", "FAILED", "UNKNOWN"] as const).map((runtimeState) => {
        const state = instanceStateOf({ ...facts, desiredState, processState, runtimeState });
        const { classification, reasons } = healthOf(state);
        const where = [desiredState, processState, runtimeState];
        expect([where, reasons.length > 0]).toEqual([where, classification !== "HEALTHY"]);
        if (processState === "CRASHED" || runtimeState === "FAILED") {
          expect([where, state.instanceState, classification]).toEqual([where, "FAILED", "FAILED"]);
        }
        return [state.instanceState, classification].join();
      }),
    ),
  );
  const count = (what: string) => seen.filter((found) => found === what).length;
  expect(["RUNNING,HEALTHY", "STOPPED,HEALTHY", "DEGRADED,DEGRADED", "DEGRADED,UNKNOWN"].map(count)).toEqual([
    1, 1, 6, 4,
  ]);
});
