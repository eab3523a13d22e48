import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { randomFrom } from "../../src/simulator/world/random.ts";
import { KillDriver, KillWorld } from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";

/** An archive a transport, with so many kills. */
const kills = trialCount(5);
/** The most that a timer takes: nearly a month. */
const never = 2 ** 31 - 1;

describe.each(["rest", "rpc"] as const)("over %s", (transport) => {
  let world: KillWorld;
  let gateway: LoggedGateway;
  let undisturbed: Archive;
  /** How long a whole job takes from its first answer on, on this machine as busy as it is now. */
  let jobMs: number;
  beforeAll(async () => {
    world = await KillWorld.create({ rows: 900 });
    gateway = await world.serve({ transport });
    const driver = new KillDriver(world, gateway, await world.archiveFolder());
    jobMs = (await driver.killAfter(never)).tookMs;
    undisturbed = await openArchive(driver.dir);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  describe("killed at random moments", () => {
    it(`archive goes on without fetching a journalled window again, and ends in an equal archive, ${kills} times`, async () => {
      const random = randomFrom(String(trialSeed));
      let landed = 0;
      let windows = 0;
      // a moment behind the job's end is no kill; five in a row on one archive, so that going on is interrupted, too
      for (let tries = 0; landed < kills && tries < 5 * kills; ) {
        const driver = new KillDriver(world, gateway, await world.archiveFolder());
        const held: { held: Awaited<ReturnType<KillDriver["journalled"]>>; since: number }[] = [];
        // what is done is not done again: later moments lie in what is left
        let left = 1;
        for (let i = 0; i < 5 && landed < kills; i++, tries++) {
          const moment = (left * random.below(1000)) / 1000;
          const killed = await driver.killAfter(moment * jobMs);
          if (!killed.landed) {
            // a whole job: the machine is less busy than it was
            if (i === 0) jobMs = killed.tookMs;
            break;
          }
          left -= moment;
          landed++;
          held.push({ held: await driver.journalled(), since: gateway.log.length });
        }
        await driver.goOnAlone();
        for (const { held: then, since } of held) {
          driver.expectNotAskedAgain(then, since);
          windows += then.length;
        }
        await driver.expectEqualTo(undisturbed);
      }
      expect(landed).toBe(kills);
      expect(windows).toBeGreaterThan(0);
    });
  });
});
