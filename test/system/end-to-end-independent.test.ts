import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { run } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";
import {
  type IndependentGateway,
  type IndependentGatewayOptions,
  startIndependentGateway,
} from "../fixtures/source/independent-gateway.ts";
import { makeBars } from "../fixtures/source/independent-rows.ts";
import { archiveFinished, btc, globbedBars, recordedBars } from "../fixtures/source/recorded-bars.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-real-bars-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const inside = (name: string) => join(folder, name);

describe.skipIf(!requires("recordings"))("a month of recorded bars with volumes", () => {
  test("from a gateway that shares no code, archived with and without storage facts, is what it served", {
    timeout: 300_000,
  }, async () => {
    const gateways: IndependentGateway[] = [];
    try {
      for (const facts of [true, false]) {
        const gateway = await startIndependentGateway({ facts, bars: btc });
        gateways.push(gateway);
        const dir = inside(`independent-${facts}`);
        const runs = await archiveFinished(gateway.url, dir, facts ? "counted" : "exhausted");
        expect(runs.map(({ runId }) => runId)).toEqual(gateway.runs("momentum-1"));
      }
      const archive = await openArchive(inside("independent-true"));
      for (const runId of gateways[0]!.runs("momentum-1")) {
        for (const table of tableNames) {
          const served = gateways[0]!.lines("momentum-1", runId, table);
          const ref = { instanceId: "momentum-1", runId };
          // compared as one text: a difference in the middle of half a million lines is found as fast as none
          expect((await segmentLines(archive, ref, table)).join("\n")).toBe(served.join("\n"));
          expect((await parquetLines(archive, ref, table)).join("\n")).toBe(served.join("\n"));
        }
      }
      const globbed = await globbedBars(inside("independent-true"), "2022/a:1");
      expect(globbed.join("\n")).toBe(recordedBars(btc).join("\n"));

      const [diff, verified] = await Promise.all([
        run(["diff", inside("independent-true"), inside("independent-false")]),
        run(["verify", "--deep", "--archive", inside("independent-false")]),
      ]);
      expect(diff.stdout).toMatch(/^equal$/m);
      expect([diff.status, verified.status]).toEqual([0, 0]);
    } finally {
      for (const gateway of gateways) await gateway.close();
    }
  });
});

const month = 31n * 86_400_000_000_000n;
const gateways: Record<string, IndependentGatewayOptions> = {
  "facts and versions, and answers of 50 rows": { facts: true, cap: 50 },
  "facts and no versions, and ranges of 31 days that it refuses beyond": {
    ...{ facts: true, versions: false, longest: { ns: month, longer: "refused" } },
  },
  "facts and ranges cut down to 31 days": { facts: true, longest: { ns: month, longer: "cutDown" } },
  "nothing but rows, and empty answers for what it does not know": {
    ...{ facts: false, unknownRuns: "empty", noContent: true },
  },
  "nothing but rows, and ranges of 31 days": { facts: false, longest: { ns: month, longer: "cutDown" } },
};

/** A gateway of two small runs, and an archive of it. */
class Archived implements AsyncDisposable {
  readonly gateway: IndependentGateway;
  readonly dir: string;

  private constructor(gateway: IndependentGateway, dir: string) {
    this.gateway = gateway;
    this.dir = dir;
  }

  static async open(options: IndependentGatewayOptions): Promise<Archived> {
    // a run that goes on without facts is asked about up to now
    const yesterday = BigInt(Date.now() - 86_400_000) * 1_000_000n;
    const gateway = await startIndependentGateway({ ...options, made: makeBars(90, yesterday) });
    return new Archived(gateway, await mkdtemp(join(folder, "changing-")));
  }

  /** Runs `archive`; what became of each run, by id. */
  async archive(...args: string[]) {
    const where = ["--gateway", this.gateway.url, "--archive", this.dir, "--retries", "0", "--json"];
    const { status, stdout, stderr } = await runInside(["archive", ...args, ...where]);
    const { runs } = JSON.parse(stdout) as {
      runs: { runId: string; state: string; tables: Record<string, { state: string; proof: string }> }[];
    };
    const states = Object.fromEntries(runs.map(({ runId, state }) => [runId, state]));
    return { status, states, runs, told: stdout + stderr };
  }

  lines(runId: string): string[][] {
    return tableNames.map((table) => this.gateway.lines("momentum-1", runId, table));
  }

  async held(runId: string): Promise<string[][]> {
    const archive = await openArchive(this.dir);
    const held: string[][] = [];
    for (const table of tableNames) {
      held.push(await segmentLines(archive, { instanceId: "momentum-1", runId }, table));
    }
    return held;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway.close();
  }
}

const finished = ["--all", "--finished"];

describe.each(Object.entries(gateways))("a gateway that shares no code, with %s", (_, options) => {
  test("is archived while a run grows, ends, changes in place, is forgotten row by row, and gone", async () => {
    await using archived = await Archived.open(options);
    const growing = archived.gateway.run("run-2");
    growing.growTo(growing.at(400));
    expect(await archived.archive(...finished)).toMatchObject({
      status: 0,
      states: { "2022/a:1": "COMPLETE" },
    });
    for (const part of [400, 800]) {
      growing.growTo(growing.at(part));
      const { status, states, told } = await archived.archive("momentum-1/run-2");
      expect([status, states, told]).toMatchObject([0, { "run-2": "OPEN" }, told]);
      expect(await archived.held("run-2")).toEqual(archived.lines("run-2"));
    }
    growing.finish();
    expect(await archived.archive(...finished)).toMatchObject({ status: 0, states: { "run-2": "COMPLETE" } });
    expect(await archived.held("run-2")).toEqual(archived.lines("run-2"));

    growing.alter("fills", 3, { price: "777" });
    expect(await archived.archive(...finished, "--recheck")).toMatchObject({ status: 0 });
    const whole = archived.lines("run-2");
    expect(await archived.held("run-2")).toEqual(whole);

    growing.forget(growing.at(300));
    expect(await archived.archive(...finished)).toMatchObject({ status: 0, states: { "run-2": "COMPLETE" } });
    archived.gateway.drop("run-2");
    expect(await archived.archive(...finished)).toMatchObject({ status: 0 });
    expect(await archived.held("run-2")).toEqual(whole);
    const verified = await runInside(["verify", "--deep", "--archive", archived.dir]);
    expect([verified.status, verified.stdout]).toEqual([0, verified.stdout]);
  });

  test("has another run under an id: it is refused, and what was proven stays", async () => {
    await using archived = await Archived.open(options);
    expect((await archived.archive(...finished)).status).toBe(0);
    const before = archived.lines("run-2");
    archived.gateway.run("run-2").reset(makeBars(70).slice(65));
    const { status, told } = await archived.archive(...finished);
    expect([status, told]).toEqual([4, expect.stringContaining("history_identity_conflict")]);
    expect(await archived.held("run-2")).toEqual(before);
  });
});

test("a table that a gateway refuses costs that table alone, and is ABSENT where its route and the facts say so", async () => {
  await using archived = await Archived.open({ facts: true });
  const { refusals } = archived.gateway.run("run-2");
  refusals.set("orders", { status: 409, code: "history_unavailable" });
  refusals.set("fills", { status: 404, code: "resource_not_found" });
  const { status, runs } = await archived.archive("momentum-1/run-2");
  expect(status).not.toBe(0);
  const states = Object.entries(runs[0]!.tables).map(([table, { state }]) => [table, state]);
  const rest = tableNames.filter((table) => !refusals.has(table)).map((table) => [table, "COMPLETE"]);
  const expected = { ...Object.fromEntries(rest), orders: "ABSENT", fills: "INCOMPLETE" };
  expect(Object.fromEntries(states)).toEqual(expected);
  refusals.delete("fills");
  expect((await archived.archive("momentum-1/run-2")).status).toBe(0);
});

test("row checksums of a gateway that shares no code prove rows, also those that grew and changed", async () => {
  await using archived = await Archived.open({ facts: true });
  const growing = archived.gateway.run("run-2");
  growing.growTo(growing.at(600));
  const hashed = ["momentum-1/run-2", "--require", "hashed"];
  expect(await archived.archive(...hashed)).toMatchObject({ status: 0, states: { "run-2": "OPEN" } });
  growing.finish();
  growing.alter("bars", 3, { close: "777" });
  const { status, runs } = await archived.archive(...hashed);
  expect(status).toBe(0);
  const proofs = Object.values(runs[0]!.tables).map(({ proof }) => proof);
  expect(proofs).toEqual(tableNames.map(() => "hashed"));
  expect(await archived.held("run-2")).toEqual(archived.lines("run-2"));
});
