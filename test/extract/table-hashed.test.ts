// @module-tag slow
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { gatewayHash } from "../../src/extract/proof/hashed.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const hashed = { settings: { require: "hashed" } } as const;
const source = (manners: Manners = { hashes: "named" }) =>
  new ArraySource(run, world({ fills: hours(30) }), manners);

/** Answers checksums otherwise than it answers everything else. */
function withChecksums(of: ArraySource, checksums: ArraySource["facts"]): ArraySource {
  const facts = of.facts.bind(of);
  of.facts = (ref, bounds, signal, asked) =>
    asked?.withHash === true ? checksums(ref, bounds, signal, asked) : facts(ref, bounds, signal, asked);
  return of;
}

describe("the proof that is required to be hashed", () => {
  it("is given where the gateway's row checksum is the row hash here, and certified with it", async () => {
    await using tables = await TableWorld.create();
    const rows = source();
    const { manifest } = await tables.archiveRun(rows, hashed);
    const { rows: count, hash } = await rowHash(rows.tables.get("fills")!.map(({ line }) => line));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "COMPLETE",
      certificate: { proof: "hashed", rowHash: { rows: `${count}`, sum: `${hash}` } },
      error: null,
    });
  });

  it("is that of the rows up to the horizon while a run goes on, and of no rows too", async () => {
    await using tables = await TableWorld.create();
    const rows = new ArraySource(run, world({ fills: hours(30), orders: [] }), {
      hashes: "named",
      final: false,
    });
    const { manifest } = await tables.archiveRun(rows, hashed);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "OPEN",
      certificate: { proof: "hashed", rows: 30 },
    });
    expect(latestView(manifest.tables.orders)).toMatchObject({
      state: "OPEN",
      certificate: { proof: "hashed", rows: 0 },
    });
  });

  it("is not given where rows differ that no count tells apart: unverified, naming both hashes", async () => {
    await using tables = await TableWorld.create();
    const truth = source();
    const [first, ...rest] = truth.tables.get("fills")!;
    const lying = new ArraySource(run, new Map([["fills", [...repriced([first!]), ...rest]]]));
    const { manifest } = await tables.archiveRun(
      withChecksums(lying, (...asked) => truth.facts(...asked)),
      hashed,
    );
    const own = await rowHash(lying.tables.get("fills")!.map(({ line }) => line));
    const gateways = await rowHash([first!, ...rest].map(({ line }) => line));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      certificate: { proof: "none" },
      error: {
        code: "unverified",
        message: `the row hash here is 30:${own.hash}, but the gateway's is 30:${gateways.hash}`,
      },
    });
    // nor do counts alone prove these rows to the next job, for they are known to be others
    await tables.archiveRun(truth);
    await tables.expectRows("fills", [first!, ...rest]);
  });

  it("is given again behind a wrong checksum, with the rows that only the archive has by then", async () => {
    await using tables = await TableWorld.create();
    const rows = source();
    const all = rows.tables.get("fills")!;
    await tables.archiveRun(rows, hashed);
    rows.tables.set("fills", all.slice(15));
    rows.storageVersion = "2";
    const facts = rows.facts.bind(rows);
    withChecksums(rows, async (...asked) => {
      const fills = (await facts(...asked))!.get("fills")!;
      return new Map([["fills", { ...fills, rowHash: 5n }]]);
    });
    expect((await tables.archiveRun(rows, hashed)).manifest.tables.fills!.attempt.outcome).toBe("UNVERIFIED");
    rows.facts = facts;
    expect((await tables.archiveRun(rows, hashed)).manifest.tables.fills!.attempt.outcome).toBe("ok");
    await tables.expectRows("fills", all);
  });

  it.each<[string, Manners, RegExp]>([
    ["gives none", {}, /gives no row checksum/],
    ["does not name its fields", { hashes: "opaque" }, /does not say which fields.*cannot be compared/],
    ["has no storage facts", { literal: true }, /no storage facts/],
  ])("is not given by a gateway that %s: unverified, with a way out", async (_, manners, message) => {
    await using tables = await TableWorld.create();
    const { manifest } = await tables.archiveRun(source(manners), hashed);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      error: { message: expect.stringMatching(message), hint: expect.stringContaining("--require counted") },
    });
    // a weaker one is taken as before
    expect((await tables.archiveRun(source(manners))).manifest.state).toBe("COMPLETE");
  });

  it("is not given over a checksum of other fields", async () => {
    await using tables = await TableWorld.create();
    const rows = source();
    const facts = rows.facts.bind(rows);
    const other = withChecksums(rows, async (...asked) => {
      const fills = (await facts(...asked))!.get("fills")!;
      return new Map([["fills", { ...fills, schemaFingerprint: `${fills.schemaFingerprint},extra:string` }]]);
    });
    const { manifest } = await tables.archiveRun(other, hashed);
    expect(manifest.tables.fills!.attempt.error?.message).toContain(
      "covers different fields than runvault's",
    );
  });

  it("is not given while rows are set aside", async () => {
    await using tables = await TableWorld.create();
    const rows = source();
    const [first, ...rest] = rows.tables.get("fills")!;
    const odd = { ...first!, line: first!.line.replace(/"price":"[^"]*"/, '"price":"abc"') };
    rows.tables.set("fills", [odd, ...rest]);
    const { manifest } = await tables.archiveRun(rows, hashed);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      certificate: { quarantined: 1, proof: "counted" },
      error: { message: expect.stringContaining("rows that were set aside here (1)") },
    });
  });

  it("brings what was only counted up again, without fetching a row, and leaves it then", async () => {
    await using tables = await TableWorld.create();
    const rows = source();
    expect((await tables.archiveRun(rows)).manifest.tables.fills!.proven!.certificate!.proof).toBe("counted");
    const asked = rows.asked.length;
    const { changed, manifest } = await tables.archiveRun(rows, hashed);
    expect([changed, manifest.tables.fills!.proven!.certificate!.proof]).toEqual([true, "hashed"]);
    expect((await tables.archiveRun(rows, hashed)).changed).toBe(false);
    expect((await tables.archiveRun(rows, { settings: { require: "counted" } })).changed).toBe(false);
    expect(rows.asked.length).toBe(asked);
  });

  it("costs the table alone where the gateway fails to compute it", async () => {
    await using tables = await TableWorld.create();
    const rows = new ArraySource(run, world({ fills: hours(3), orders: hours(3) }), { hashes: "named" });
    const facts = rows.facts.bind(rows);
    withChecksums(rows, async (...asked) => {
      if (asked[3]?.table === "fills") throw new RunvaultError("rate_limited", "too many scans");
      return await facts(...asked);
    });
    const { manifest } = await tables.archiveRun(rows, hashed);
    expect(manifest.tables.fills!.attempt.error?.code).toBe("rate_limited");
    expect(manifest.tables.fills!.state).not.toBe("COMPLETE");
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
  });
});

describe("a checksum that a gateway refuses as too much", () => {
  const fills = tableNamed("fills");
  const { signal } = new AbortController();
  /** Takes no more than so many rows at a time. */
  function limited(most: bigint, code: "limit_exceeded" | "timeout") {
    const rows = source();
    const facts = rows.facts.bind(rows);
    const windows: bigint[] = [];
    withChecksums(rows, async (...asked) => {
      const answer = (await facts(...asked))!;
      const count = answer.get("fills")!.rows;
      if (count > most) throw new RunvaultError(code, "too much");
      windows.push(count);
      return answer;
    });
    return { rows, windows };
  }

  it.each(["limit_exceeded", "timeout"] as const)(
    "(%s) is asked for by windows, which add up",
    async (code) => {
      const { rows, windows } = limited(7n, code);
      const whole = await rowHash(rows.tables.get("fills")!.map(({ line }) => line));
      expect(await gatewayHash(rows, run, fills, {}, signal)).toEqual({ hash: whole });
      expect(windows.length).toBeGreaterThan(4);
      const within = rows.rowsWithin("fills", { from: at(3), to: at(29) }).map(({ line }) => line);
      expect(await gatewayHash(rows, run, fills, { from: at(3), to: at(29) }, signal)).toEqual({
        hash: await rowHash(within),
      });
    },
  );

  it("is an error where a single timestamp is too much already", async () => {
    const { rows } = limited(0n, "limit_exceeded");
    await expect(gatewayHash(rows, run, fills, {}, signal)).rejects.toMatchObject({ code: "limit_exceeded" });
  });
});
