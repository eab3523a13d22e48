import { afterAll, beforeAll, it } from "vitest";
import { allCases, expectBounded } from "../fixtures/archive/hostile-cases.ts";
import { HostileArchive } from "../fixtures/archive/hostile-place.ts";

let hostile: HostileArchive;
beforeAll(async () => {
  hostile = await HostileArchive.create();
});
afterAll(() => hostile[Symbol.asyncDispose]());

it.each(allCases)(
  "in the place of a file of the archive a %s is never read as %s",
  async (place, kind, commands) => {
    for (const command of commands) {
      await hostile.renew();
      await expectBounded(hostile, place, kind, command);
    }
  },
);
