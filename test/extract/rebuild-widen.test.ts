// @module-tag slow
import { readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openQuery } from "../../src/analytics/query/query.ts";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { lockRun, lockRunNow } from "../../src/archive/lock.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { finishWidening, startWidening } from "../../src/extract/rebuild/widen.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import type { RunRef } from "../../src/model/source.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { fillsOf, RebuildWorld, second, third } from "../fixtures/archive/rebuild-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { at, run } from "../fixtures/archive/table-world.ts";
import { filesBelow } from "../fixtures/command/kill-driver.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const { signal } = new AbortController();
const step = () => {};

let under: RebuildWorld;
beforeEach(async () => {
  under = await RebuildWorld.create();
});
afterEach(() => under[Symbol.asyncDispose]());

async function queried(sql: string): Promise<unknown[][]> {
  await using query = await openQuery(under.archive);
  const rows: unknown[][] = [];
  for await (const batch of (await query.run(sql)).batches()) rows.push(...(batch as unknown[][]));
  return rows.map((row) => row.map(String));
}

describe("a widened column", () => {
  // nine digits before the point and nine behind it are what the default holds
  const wide = "1234567890.123456789012345678";

  test("holds values that stopped the table before, beside those of other runs", async () => {
    await under.archiveFills(run, "0.123456789");
    const source = await under.archiveFills(second, wide);
    const failed = (await under.archive.manifest(second))!.tables.fills!;
    expect(latestView(failed)).toMatchObject({ state: "INCOMPLETE", error: { code: "value_out_of_range" } });
    expect(failed.attempt.error!.hint).toContain("runvault maintain rebuild --widen fills.price=");
    const widened = await under.command("maintain", "rebuild", "--widen", "fills.price", "--json");
    expect(widened).toMatchObject({ status: 0 });
    expect(JSON.parse(widened.stdout)).toMatchObject({ unfinished: [], exit: 0 });
    await under.archive.refresh();
    expect(under.archive.exactTypes("fills").price).toBe("DECIMAL(38,18)");
    expect(under.archive.formerTypes("fills")).toBeUndefined();
    await under.place.archiveRun(source, { run: second });
    expect((await under.archive.manifest(second))!.state).toBe("COMPLETE");
    expect(await parquetLines(under.archive, second, "fills")).toEqual(
      fillsOf(second, wide).map(({ line }) => line),
    );
    expect(
      await queried("SELECT max(price), min(price), sum(price)::VARCHAR <> '' FROM fills"),
    ).toMatchObject([[wide, "0.123456789000000000", "true"]]);
    expect(await under.globbedTypes("price")).toEqual(
      new Map([
        [run.runId, "DECIMAL(38,18)"],
        [second.runId, "DECIMAL(38,18)"],
      ]),
    );
    await under.expectVerifiedDeep(run);
    await under.expectVerifiedDeep(second);
    const again = await under.command("maintain", "rebuild", "--widen", "fills.price=38,18");
    expect(again).toMatchObject({ status: 0, stdout: "nothing to rebuild\n" });
  });

  test("is seen exactly by queries while only some runs have it; globs stay of one type, files refuses", async () => {
    await under.archiveFills(run, "0.123456789");
    await under.archiveFills(second, "0.5");
    const types = { fills: { price: "DECIMAL(38,18)" } };
    await startWidening(under.archive, types, step);
    await under.rebuild(second, null);
    // a job that begins meanwhile has the new types
    await under.archiveFills(third, wide);
    const sorted = [wide, "0.500000000000000000", "0.123456789000000000"];
    const sql = "SELECT price FROM fills WHERE seq = 1 ORDER BY price DESC";
    expect(await queried(sql)).toEqual(sorted.map((price) => [price]));
    const former = new Map([run, second].map(({ runId }) => [runId, "DECIMAL(18,9)"]));
    expect(await under.globbedTypes("price")).toEqual(former);
    const files = await under.command("export", "--list", "fills");
    expect(files).toMatchObject({ status: 4, stdout: "" });
    expect(files.stderr).toContain("fills.price is DECIMAL(18,9) in some runs and DECIMAL(38,18) in others");
    expect(await finishWidening(under.archive, step, signal)).toEqual(["fills"]);
    expect(await under.globbedTypes("price")).toEqual(former);

    const { status, stdout } = await under.command("maintain", "rebuild", "--widen", "fills.price");
    expect({ status, stdout }).toMatchObject({ status: 0 });
    expect(stdout).toMatch(/^alpha\/2022-01-01 {2}generation 2: 12 rows, 1 bucket converted, .*\n$/);
    await under.archive.refresh();
    expect(await under.globbedTypes("price")).toEqual(
      new Map([run, second, third].map(({ runId }) => [runId, "DECIMAL(38,18)"])),
    );
    expect(await queried(sql)).toEqual(sorted.map((price) => [price]));
    expect((await under.command("export", "--list", "fills")).stdout.split("\n").length).toBe(4);
    expect((await under.command("verify", "--deep")).status).toBe(0);
  });

  test("leaves an archive equal to one that had the wide type from the beginning", async () => {
    await under.archiveFills(run, "0.123456789");
    expect((await under.command("maintain", "rebuild", "--widen", "fills.price=24,12")).status).toBe(0);
    const dir = `${under.archive.dir}-other`;
    const other = await openArchive(dir, {
      create: true,
      exactTypes: { fills: { price: "DECIMAL(24,12)" } },
    });
    await archiveRun({
      source: new ArraySource(run, new Map([["fills", fillsOf(run, "0.123456789")]])),
      archive: other,
      run,
      tables: ["fills"],
      clock: () => at(1_000_000),
      retry: quickRetry(),
      signal,
      tool: "test",
      duckdb: sharedDuckDB,
    });
    const { equal, runs } = await diffArchives(await openArchive(under.archive.dir), other);
    expect(equal, JSON.stringify(runs)).toBe(true);
  });

  test.each([
    ["DECIMAL(18,9)", "=18,8", ", and DECIMAL(18,8) cannot hold all of its values"],
    ["DECIMAL(18,9)", "=12,9", ", and DECIMAL(12,9) cannot hold all of its values"],
    ["DECIMAL(38,9)", "", ": its 29 digits before the point and 18 after it are more than 38"],
  ])("only ever widens: from %s, fills.price%s is refused", async (present, to, says) => {
    await under.archive.replaceTypes({ exactTypes: { fills: { price: present } }, widening: {} });
    const before = await under.committedText();
    const type = to === "" ? null : `DECIMAL(${to.slice(1)})`;
    await expect(startWidening(under.archive, { fills: { price: type } }, step)).rejects.toMatchObject({
      code: "invalid_argument",
      message: `fills.price is ${present}${says}`,
    });
    expect(await under.committedText()).toEqual(before);
  });

  // a value with 17 decimals had the column take 20 digits before the point, which no later value with 19 could have back
  test("moves digits that no archived value needs to the other side of the point, and no others", async () => {
    await under.archiveFills(run, "0.05234567890123456");
    expect((await under.command("maintain", "rebuild", "--widen", "fills.price=38,18")).status).toBe(0);
    await under.archiveFills(run, "0.05234567890123456");
    expect(await under.command("maintain", "rebuild", "--widen", "fills.price=38,30")).toMatchObject({
      status: 0,
    });
    await under.archive.refresh();
    expect(under.archive.exactTypes("fills").price).toBe("DECIMAL(38,30)");
    await under.expectVerifiedDeep(run);
    const before = await under.committedText();
    for (const lossy of ["38,16", "37,30"]) {
      const { status, stderr } = await under.command(
        "maintain",
        "rebuild",
        "--widen",
        `fills.price=${lossy}`,
      );
      expect({ status, stderr }).toMatchObject({ status: 2 });
      expect(stderr).toContain(`fills.price is DECIMAL(38,30), and DECIMAL(${lossy}) cannot hold all`);
    }
    expect(await under.committedText()).toEqual(before);
  });

  test.each([
    ["DECIMAL(15,9)", "DECIMAL(38,18)"],
    ["DECIMAL(30,20)", "DECIMAL(38,20)"],
    ["DECIMAL(38,20)", "DECIMAL(38,20)"],
  ])("gets, from %s, %s where no type is named", async (present, wider) => {
    await under.archive.replaceTypes({ exactTypes: { fills: { price: present } }, widening: {} });
    await startWidening(under.archive, { fills: { price: null } }, step);
    expect(under.archive.exactTypes("fills").price).toBe(wider);
  });

  test("is not begun while any job is under way: exit status 6, and nothing is half done", async () => {
    await under.archiveFills(run);
    await under.archiveFills(second);
    const before = await under.committedText();
    {
      await using _lock = await lockRun(under.archive.layout, second);
      const { status, stderr } = await under.command("maintain", "rebuild", "--widen", "fills.price");
      expect(status).toBe(6);
      expect(stderr).toContain("another job");
      expect(await under.committedText()).toEqual(before);
    }
    expect((await under.command("maintain", "rebuild", "--widen", "fills.price")).status).toBe(0);
  });

  test("has an interrupted job convert again what it converted, and fetch nothing again", async () => {
    const rows = fillsOf(run, "0.25");
    const source = new ArraySource(run, new Map([["fills", rows]]));
    await under.place.archiveUntil(source, "parquet-journalled", 1);
    const asked = source.asked.length;
    expect((await under.command("maintain", "rebuild", "--widen", "fills.price")).status).toBe(0);
    const { rows: fetched, manifest } = await under.place.archiveRun(source);
    expect({ fetched, asked: source.asked.filter(({ limit }) => limit !== 1).length }).toEqual({
      fetched: 0,
      asked,
    });
    expect(manifest.tables.fills!.proven!.exactTypes.price).toBe("DECIMAL(38,18)");
    expect(await under.globbedTypes("price")).toEqual(new Map([[run.runId, "DECIMAL(38,18)"]]));
    await under.expectVerifiedDeep(run);
  });

  describe("while its change of type is being ended", () => {
    const types = { fills: { price: "DECIMAL(38,18)" } };
    const wideIn = (...runs: readonly RunRef[]) =>
      new Map(runs.map(({ runId }) => [runId, "DECIMAL(38,18)"]));

    test("keeps jobs out of the runs, and leaves what people glob as it was where one is under way", async () => {
      await under.archiveFills(run);
      await under.archiveFills(second);
      await startWidening(under.archive, types, step);
      await under.rebuild(run, null);
      await under.rebuild(second, null);
      // a copy of an archive without its locks is kept from jobs as well
      await rm(under.archive.layout.locksDir, { recursive: true });
      {
        await using _lock = await lockRun(under.archive.layout, second);
        await expect(finishWidening(under.archive, step, signal)).rejects.toMatchObject({ code: "locked" });
        expect(under.archive.formerTypes("fills")).toBeDefined();
        expect(new Set((await under.globbedTypes("price")).values())).toEqual(new Set(["DECIMAL(18,9)"]));
      }
      let job: Promise<unknown> = Promise.resolve();
      const beginMeanwhile = (name: string) => {
        if (name === "tables-removed") job = lockRunNow(under.archive.layout, second).catch((error) => error);
      };
      expect(await finishWidening(under.archive, beginMeanwhile, signal)).toEqual([]);
      expect(await job).toMatchObject({ code: "locked" });
      expect(await under.globbedTypes("price")).toEqual(wideIn(run, second));
    });

    test("has the links of a new run made, once the job is done that left them alone", async () => {
      await under.archiveFills(run);
      await startWidening(under.archive, types, step);
      await under.rebuild(run, null);
      const { layout } = under.archive;
      const ending: Archive = {
        ...under.archive,
        replaceTypes: async (to) => {
          await under.archiveFills(third);
          expect(await filesBelow(layout.tableDir("fills", third))).toEqual([]);
          await under.archive.replaceTypes(to);
        },
      };
      let lock: AsyncDisposable | undefined;
      const finished = finishWidening(
        ending,
        (name) => {
          // the job of the new run goes on for a while
          if (name === "widening-finished")
            void lockRun(layout, third).then((held) => {
              lock = held;
              setTimeout(() => void held[Symbol.asyncDispose](), 300);
            });
        },
        signal,
      );
      expect(await finished).toEqual([]);
      expect(lock).toBeDefined();
      expect(await under.globbedTypes("price")).toEqual(wideIn(run, third));
    });

    test("has a job make its links that commits and only then sees that the change is at its end", async () => {
      await under.archiveFills(run);
      await startWidening(under.archive, types, step);
      const { layout } = under.archive;
      const source = new ArraySource(third, new Map([["fills", fillsOf(third)]]));
      await under.place.archiveRun(source, {
        run: third,
        step: (name) => {
          if (name !== "manifest-renamed") return;
          const { widening: _, ...ended } = JSON.parse(readFileSync(layout.archiveFile, "utf8"));
          writeFileSync(layout.archiveFile, JSON.stringify(ended));
        },
      });
      expect((await filesBelow(layout.tableDir("fills", third))).length).toBe(1);
    });
  });

  test("is named with its command by a rebuild that finds the change of its type unfinished", async () => {
    await under.archiveFills(run);
    await under.archiveFills(second);
    await startWidening(under.archive, { fills: { price: null } }, step);
    const { status, stdout } = await under.command("maintain", "rebuild", `${run.instanceId}/${run.runId}`);
    expect(status).toBe(0);
    expect(stdout).toContain(
      `types of fills are not yet changed in all runs: \`runvault maintain rebuild --archive ${under.archive.dir} --widen fills.price=38,18\` finishes the change`,
    );
    const ended = await under.command("maintain", "rebuild", "--widen", "fills.price=38,18", "--json");
    expect(JSON.parse(ended.stdout)).toMatchObject({ exit: 0, unfinished: [], goOn: null });
  });

  test("refuses a commit in the former type, and the same job again ends in the new one", async () => {
    const source = new ArraySource(run, new Map([["fills", fillsOf(run)]]));
    const widenMeanwhile = async () => {
      // another machine's locks are not seen here
      await rm(join(under.archive.dir, "locks"), { recursive: true });
      const other = await openArchive(under.archive.dir);
      await other.replaceTypes({ exactTypes: { fills: { price: "DECIMAL(38,18)" } }, widening: {} });
    };
    let widened: Promise<void> | undefined;
    const job = under.place.archiveRun(source, {
      step: (name) => {
        if (name === "converted") widened = widenMeanwhile();
      },
      // the last thing asked ahead of the commit
      source: Object.assign(Object.create(source) as ArraySource, {
        document: async (of: typeof run, kind: "summary") => {
          await widened;
          return await source.document(of, kind);
        },
      }),
    });
    await expect(job).rejects.toMatchObject({ code: "locked" });
    expect(await under.archive.manifest(run)).toBeNull();
    const { rows, manifest } = await under.place.archiveRun(source);
    expect(rows).toBe(0);
    expect(manifest.tables.fills!.proven!.exactTypes.price).toBe("DECIMAL(38,18)");
    await under.expectVerifiedDeep(run);
  });
});

describe("on the command line, rebuild refuses", () => {
  test.each([
    [["--widen", "fills.prise"], "names an unknown exact column: fills.prise (did you mean price?)"],
    [["--widen", "fills.price=39,2"], "TABLE.COLUMN"],
    [["--widen", "fills.price=18,18"], "SCALE below it"],
    [
      ["--widen", "fills.price=18,8"],
      "fills.price is DECIMAL(18,9), and DECIMAL(18,8) cannot hold all of its values",
    ],
    [["--widen", "fills.price", "a/b"], "--widen applies to the whole archive"],
  ])("%j", async (args, says) => {
    const { status, stderr } = await under.command("maintain", "rebuild", ...args);
    expect(status).toBe(2);
    expect(stderr).toContain(says);
  });
});
