import { describe, expect, it } from "vitest";
import type { ArchiveSettings } from "../../src/extract/run/archive-run.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const byHash = expect.stringContaining("have the gateway's row checksum");
const byStream = expect.stringContaining("were streamed once more");

/** A run that was archived while it went on, and is final now; `hashes` are the checksums asked for since. */
async function turnedFinal(tables: TableWorld, manners: Manners = { hashes: "named" }) {
  const source = new ArraySource(run, world({ fills: hours(60), orders: hours(60) }), {
    ...manners,
    final: false,
  });
  await tables.archiveRun(source);
  source.manners = manners;
  source.asked.length = 0;
  const hashes: (string | undefined)[] = [];
  const facts = source.facts.bind(source);
  source.facts = async (ref, bounds, signal, asked) => {
    if (asked?.withHash) hashes.push(asked.table);
    return await facts(ref, bounds, signal, asked);
  };
  return { source, hashes };
}

const streamed = ({ asked }: ArraySource): RowRequest[] => asked.filter(({ limit }) => limit === undefined);

describe("the final pass of a gateway with row checksums", () => {
  it("streams nothing where the checksum of all that is held is ours, for one question a table", async () => {
    await using tables = await TableWorld.create();
    const { source, hashes } = await turnedFinal(tables);
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect([...hashes].sort()).toEqual(["fills", "orders"]);
    // what came since the horizon alone
    for (const { from } of streamed(source)) expect(from).toBeGreaterThanOrEqual(at(59));
    for (const name of ["fills", "orders"] as const) {
      expect(manifest.tables[name]!.proven!.certificate!.restsOn).toContainEqual(byHash);
      await tables.expectRows(name, source.tables.get(name)!);
    }
    expect((await tables.archiveRun(source)).changed).toBe(false);
  });

  it.each([
    ["first", 0],
    ["middle", 33],
    ["last", 59],
  ])("streams what has another checksum, and brings what changed in place: the %s row", async (_, n) => {
    await using tables = await TableWorld.create();
    const { source } = await turnedFinal(tables);
    const rows = source.tables.get("fills")!;
    source.tables.set("fills", rows.toSpliced(n, 1, ...repriced(rows.slice(n, n + 1))));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.proven!.certificate!.restsOn).toContainEqual(byStream);
    expect(manifest.tables.orders!.proven!.certificate!.restsOn).toContainEqual(byHash);
    expect(streamed(source).some(({ table, from }) => table === "orders" && from! < at(59))).toBe(false);
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("streams a table in which a late row came in, once its window is fetched again", async () => {
    await using tables = await TableWorld.create();
    const { source } = await turnedFinal(tables);
    const late = world({ fills: hours(61) })
      .get("fills")!
      .at(-1)!;
    const line = late.line.replace(`"ts_event":"${late.ts}"`, `"ts_event":"${at(7) + 1n}"`);
    const rows = source.tables.get("fills")!;
    source.tables.set("fills", rows.toSpliced(8, 0, { ...late, ts: at(7) + 1n, line }));
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it.each<[string, Manners]>([
    ["gives none", {}],
    ["does not name its fields", { hashes: "opaque" }],
  ])("streams as ever where the gateway %s", async (_, manners) => {
    await using tables = await TableWorld.create();
    const { source, hashes } = await turnedFinal(tables, manners);
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    expect(hashes).toHaveLength(2);
    expect(manifest.tables.fills!.proven!.certificate!.restsOn).toContainEqual(byStream);
    expect(streamed(source).some(({ table, from }) => table === "fills" && from! < at(59))).toBe(true);
  });

  it.each(["limit_exceeded", "timeout", "rate_limited"] as const)(
    "streams where the gateway does not compute it (%s)",
    async (code) => {
      await using tables = await TableWorld.create();
      const { source, hashes } = await turnedFinal(tables);
      const facts = source.facts;
      source.facts = async (...asked) => {
        const answer = await facts(...asked);
        if (asked[3]?.withHash) throw new RunvaultError(code, "too many rows");
        return answer;
      };
      const { manifest } = await tables.archiveRun(source);
      expect([manifest.state, hashes.length]).toEqual(["COMPLETE", 2]);
      expect(manifest.tables.fills!.proven!.certificate!.restsOn).toContainEqual(byStream);
    },
  );

  it("asks for none where the operator trusts counts, and where nothing is due", async () => {
    await using tables = await TableWorld.create();
    const { source, hashes } = await turnedFinal(tables);
    await tables.archiveRun(source, { settings: { finalPass: "counts" } });
    await tables.archiveRun(source);
    expect(hashes).toEqual([]);
  });
});

describe("a recheck of a gateway with row checksums", () => {
  const settings = { recheckBefore: at(2_000_000) };

  it("streams no row that has the same checksum, and finds one that changed without a word", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(60) }), { hashes: "named" });
    await tables.archiveRun(source);
    source.asked.length = 0;
    const { manifest } = await tables.archiveRun(source, { settings });
    expect(streamed(source)).toEqual([]);
    expect(manifest.tables.fills!.proven!.certificate!.restsOn).toContainEqual(byHash);
    const rows = source.tables.get("fills")!;
    source.tables.set("fills", [...repriced(rows.slice(0, 1)), ...rows.slice(1)]);
    expect((await tables.archiveRun(source, { settings })).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("takes up a run of which any table is due", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(9), orders: hours(9) }));
    await tables.archiveRun(source, { tables: ["fills"], clock: () => at(1000) });
    await tables.archiveRun(source, { tables: ["orders"], clock: () => at(3000) });
    source.tables.set("fills", repriced(source.tables.get("fills")!));
    const job = (n: number) => tables.archiveRun(source, { settings: { recheckBefore: at(n) } });
    expect((await job(999)).changed).toBe(false);
    expect((await job(2000)).changed).toBe(true);
    await tables.expectRows("fills", source.tables.get("fills")!);
  });

  it("is what the certificate says of the rows held, once, until it is done again", async () => {
    await using tables = await TableWorld.create();
    const { source } = await turnedFinal(tables);
    const grounds = async (settings: Partial<ArchiveSettings>) => {
      const { manifest } = await tables.archiveRun(source, { settings });
      return manifest.tables.fills!.proven!.certificate!.restsOn;
    };
    const ends = expect.stringContaining("outer ends");
    const counts = "counts alone for rows archived while the run went on";
    expect(await grounds({ finalPass: "counts" })).toEqual([ends, counts]);
    // another job, which fetches nothing
    expect(await grounds({ fingerprint: true })).toEqual([ends, counts]);
    expect(await grounds(settings)).toEqual([ends, byHash]);
    source.manners = {};
    expect(await grounds(settings)).toEqual([ends, byStream]);
    expect(await grounds(settings)).toEqual([ends, byStream]);
  });
});
