import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireNoneShown, secretPlaces } from "../fixtures/pipeline/secret-places.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

// the other third of the values is test/cli/check-command.test.ts
describe("what a variable holds is never shown", () => {
  let sound = 0;
  test.each(secretPlaces.map(({ 1: value }, nth) => ({ nth, value })))(
    "where it stands for $value, right or wrong",
    async ({ nth }) => {
      sound += await requireNoneShown(folder, nth, (valueNth) => (nth + valueNth) % 3 !== 0);
    },
  );

  test("in many places, in some of which it is right", () => {
    expect(secretPlaces.length).toBeGreaterThan(35);
    expect(sound).toBeGreaterThan(16);
  });
});
