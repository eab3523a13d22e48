import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { serve } from "../../src/serve/server.ts";
import { worldRun } from "../fixtures/archive/archived-world.ts";
import { allCases, expectBounded, letGo, mostMs, someCases } from "../fixtures/archive/hostile-cases.ts";
import { HostileArchive, otherRun } from "../fixtures/archive/hostile-place.ts";
import { requires } from "../fixtures/command/requirement.ts";

const hasFifo = requires("fifo");
const ifFifo = it.skipIf(!hasFifo);

let hostile: HostileArchive;
beforeAll(async () => {
  hostile = await HostileArchive.create();
});
afterAll(() => hostile[Symbol.asyncDispose]());

describe("in the place of a file of the archive", () => {
  it.for(someCases)("a %s is never read as %s, by %s", async ([place, kind, commands], { skip }) => {
    skip(place === "FIFO" && !hasFifo);
    for (const command of commands) {
      await hostile.renew();
      await expectBounded(hostile, place, kind, command);
    }
  });

  it("each thing is met, and each kind of file", () => {
    const met = (of: typeof allCases) => ({
      places: new Set(of.map(([place]) => place)),
      kinds: new Set(of.map(([, kind]) => kind)),
    });
    expect(met(someCases)).toEqual(met(allCases));
  });
});

ifFifo("a manifest that is a FIFO costs a server that run alone, however often it is asked for", async () => {
  await hostile.renew();
  await hostile.put("FIFO", "manifest");
  await using source = openArchiveSource(hostile.archive);
  const server = await serve({ source, host: "127.0.0.1", port: 0 });
  try {
    const ask = async ({ instanceId, runId }: typeof worldRun) => {
      const url = `${server.url}/history/fills?instance=${instanceId}&run_id=${runId}`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(mostMs) });
      await answer.arrayBuffer();
      return answer.status;
    };
    // as many as there are threads to open files, and one more
    const asked = await Promise.all(Array.from({ length: 5 }, () => ask(worldRun)));
    expect(asked).toEqual(asked.map(() => 502));
    expect(await ask(otherRun)).toBe(200);
  } finally {
    await letGo(hostile, "manifest");
    await server.close();
  }
});
