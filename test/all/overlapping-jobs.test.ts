import { expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { run } from "../fixtures/command/command-process.ts";
import { JobWorld } from "../fixtures/pipeline/job-world.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

/** As few as show a run that the other job held, which is a matter of moments. */
const rounds = trialCount(3);
const mostRounds = 20;

interface RunTold {
  readonly type: string;
  readonly instance: string;
  readonly run: string;
  readonly result: string;
}

test("two jobs with half their runs in common, begun at once: nothing is fetched twice, and each says what the other did", {
  timeout: 600_000,
}, async () => {
  let byOther = 0;
  for (let round = 0; round < rounds || (byOther === 0 && round < mostRounds); round++) {
    await using world = await JobWorld.open(3, 4);
    const files = [
      await world.write({ runs: { instances: ["i1", "i2"] } }, "one"),
      await world.write({ runs: { instances: ["i2", "i3"] } }, "other"),
    ];
    const ended = await Promise.all(files.map((file) => run(["run", file, "--json=lines"])));
    const told = ended.map(({ stdout }) =>
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as RunTold)
        .filter(({ type }) => type === "run"),
    );
    for (const { status, stderr } of ended) expect(status, `round ${round}: ${stderr}`).toBe(0);
    const archive = await openArchive(world.dir);
    expect((await archive.manifests()).map(({ state }) => state)).toEqual(Array(12).fill("COMPLETE"));

    const given = world.log.filter(({ path, query, rows }) => {
      const { limit } = (query ?? {}) as { limit?: string };
      return path.endsWith("/history/fills") && limit === undefined && Number(rows) > 0;
    });
    const runs = given.map(({ query }) => JSON.stringify(query));
    expect(new Set(runs).size).toBe(runs.length);
    expect(runs).toHaveLength(12);

    // of each run in common one archived it, and the other found it done, or saw that it was held and then done
    const common = told.map(
      (runs) => new Map(runs.filter(({ instance }) => instance === "i2").map((one) => [one.run, one.result])),
    );
    for (const name of ["r1", "r2", "r3", "r4"]) {
      const results = common.map((runs) => runs.get(name) ?? "unchanged");
      expect(
        results.filter((result) => result === "archived"),
        `round ${round}: ${results}`,
      ).toHaveLength(1);
      expect(["archived", "by_other", "unchanged"]).toEqual(expect.arrayContaining(results));
      if (results.includes("by_other")) byOther++;
    }
  }
  expect(byOther).toBeGreaterThan(0);
});
