import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, serve } from "../../../src/serve/server.ts";
import { openSimulator, type Simulator } from "../../../src/simulator/simulator.ts";
import { AttackedPlace } from "../../fixtures/attack/attacked-archive.ts";
import { hostilePlan, openHostileGateway } from "../../fixtures/attack/hostile-gateway.ts";
import { trialCount, trialSeed } from "../../fixtures/trials/trials.ts";

const gateways = Array.from({ length: trialCount(2) }, (_, n) => n);

let folder: string;
let simulator: Simulator;
let honest: Served;
let run: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-attack-world-"));
  simulator = await openSimulator({ seed: "attack", runs: 1, rows: 1500, cacheDir: folder });
  const [instance] = await simulator.instances();
  run = `${instance!.instanceId}/${instance!.currentRunId}`;
  honest = await serve({ source: simulator, control: simulator, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await honest.close();
  await simulator[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

it.each(gateways)(`archive holds against hostile gateway %i of seed ${trialSeed}`, async (n) => {
  const plan = hostilePlan(String(trialSeed), n);
  await using gateway = await openHostileGateway(plan, honest.url);
  await using place = await AttackedPlace.make();
  const attacked = await place.attack(plan, gateway.url);
  const made = [...gateway.made].map(([name, times]) => `${times} × ${name}`).join(", ");
  gateway.relent();
  const after = await place.goOn(plan, gateway.url, run);
  const told = `${made || "nothing came up"}; ${plan.transport}, ${plan.percent} %: ${JSON.stringify(attacked, null, 2)}`;
  expect(attacked.faults, told).toEqual([]);
  expect(gateway.elsewhere, "asked at another origin").toEqual([]);
  // nothing of it stays in the way of an honest answer, but where the run that was archived began at another time
  if (!after.stdout.includes("history_identity_conflict")) expect(after, told).toMatchObject({ status: 0 });
});
