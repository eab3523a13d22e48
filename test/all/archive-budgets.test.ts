import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { KillDriver, KillWorld } from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";

describe.each(["rest", "rpc"] as const)("over %s", (transport) => {
  let world: KillWorld;
  let gateway: LoggedGateway;
  let undisturbed: Archive;
  beforeAll(async () => {
    world = await KillWorld.create({ rows: transport === "rest" ? 6000 : 2000 });
    gateway = await world.serve({ transport });
    const driver = new KillDriver(world, gateway, await world.archiveFolder());
    await driver.goOn();
    undisturbed = await openArchive(driver.dir);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const fresh = async () => new KillDriver(world, gateway, await world.archiveFolder());

  // what came is counted by one room for both
  it.runIf(transport === "rest")(
    "--max-bytes ends a job INCOMPLETE with what came kept, and the jobs after it end as one undisturbed",
    async () => {
      const driver = await fresh();
      let status: number | null = 4;
      let ended = 0;
      for (; status === 4; ended++) {
        const held = await driver.journalled();
        const since = gateway.log.length;
        const finished = await driver.start({ RUNVAULT_MAX_BYTES: "2MB" }).finished;
        status = finished.status;
        await gateway.quiet();
        driver.expectNotAskedAgain(held, since);
        if (status !== 4) break;
        expect(finished.stderr).toContain("runvault: incomplete: --max-bytes was reached: 2.");
        expect(finished.stderr).toContain("it continues from what is already fetched");
        expect(finished.stdout).toContain("  INCOMPLETE: --max-bytes was reached");
        expect((await driver.journalled()).length).toBeGreaterThan(held.length);
        expect(await driver.manifest()).toBeNull();
      }
      expect([status, ended > 0]).toEqual([0, true]);
      await driver.expectEqualTo(undisturbed);
    },
  );

  it("--max-time ends a job whose gateway keeps it waiting, and runs that were not begun are told", async () => {
    const driver = await fresh();
    gateway.holdAfter(12);
    const env = { RUNVAULT_MAX_TIME: "3s", RUNVAULT_HEADERS_TIMEOUT: "1h", RUNVAULT_IDLE_TIMEOUT: "1h" };
    Object.assign(env, { RUNVAULT_PARALLEL_RUNS: "1" });
    const finished = await driver.start(env, ["alpha-1/never-begun"]).finished;
    gateway.letGo();
    await gateway.quiet();
    expect(finished.stderr).toContain("runvault: incomplete: --max-time was reached after 3 s");
    expect(finished.stderr).toContain("it continues from what is already fetched");
    expect(finished.stdout).toMatch(/^alpha-1\/never-begun +not tried$/m);
    expect(finished.status).toBe(4);
    const held = await driver.journalled();
    expect(held.length).toBeGreaterThan(0);
    const since = gateway.log.length;
    await driver.goOn();
    driver.expectNotAskedAgain(held, since);
    await driver.expectEqualTo(undisturbed);
  });

  it("--min-rate ends the table whose rows stop coming, and the next job ends as one undisturbed", async () => {
    const slow = await world.serve({ transport, faults: ["stall@fills:20"] });
    const driver = new KillDriver(world, slow, await world.archiveFolder());
    const window = ["--min-rate-window", "500ms"];
    const { status, stdout } = await driver.start({ RUNVAULT_MIN_RATE: "1KB" }, window).finished;
    await slow.quiet();
    expect(stdout).toMatch(
      /fills +INCOMPLETE .*rows arrived at \d+ B a second over 1 s of waiting, below the 1\.0 kB a second of/,
    );
    expect(stdout).toMatch(/orders +COMPLETE/);
    expect(status).toBe(3);
    await driver.goOn();
    // the fault came once; a manifest names the address that its rows came from
    const again = new KillDriver(world, slow, await world.archiveFolder());
    await again.goOn();
    await driver.expectEqualTo(await openArchive(again.dir));
  });

  it("a budget that ends ahead of all that can be kept says so", async () => {
    const driver = await fresh();
    gateway.holdAfter(0);
    const { status, stderr } = await driver.start({ RUNVAULT_MAX_TIME: "2s" }).finished;
    gateway.letGo();
    await gateway.quiet();
    expect(stderr).toContain("hint: Nothing could be kept");
    expect(status).toBe(4);
  });
});
