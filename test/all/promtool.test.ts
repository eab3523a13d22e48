import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { requires } from "../fixtures/command/requirement.ts";
import { ServedArchive } from "../fixtures/served/served-archive.ts";

let served: ServedArchive;
beforeAll(async () => {
  served = await ServedArchive.open({ rows: 500 });
});
afterAll(async () => {
  await served?.[Symbol.asyncDispose]();
});

const sources = {
  "a served archive": () => `${served.url}/metrics`,
  "the simulator": () => `${served.simulated.url}/metrics`,
  "a simulated instance": () => `${served.simulated.url}/metrics/instances/9100`,
};

test.skipIf(!requires("promtool")).each(Object.keys(sources))(
  "promtool finds nothing to mend in the metrics of %s",
  async (name) => {
    const metrics = sources[name as keyof typeof sources]();
    // figures by route are there once a route was asked for
    await fetch(metrics);
    const input = await (await fetch(metrics)).text();
    expect(input).toContain("# TYPE");
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
      input,
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  },
);
