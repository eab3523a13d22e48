import { mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Served, serve } from "../../src/serve/server.ts";
import { hours, run, world } from "../fixtures/archive/table-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { expectRefusal } from "../fixtures/command/refusal.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const named = `${run.instanceId}/${run.runId}`;
const reason = "one row has no price; the venue has no copy";

let folder: string;
let dir: string;
let source: ArraySource;
let server: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-accept-"));
  dir = join(folder, "archive");
  const tables = world({ fills: hours(30), orders: hours(10) });
  const fills = tables.get("fills")!;
  fills[3] = { ...fills[3]!, line: fills[3]!.line.replace(/"price":"[^"]*"/, '"price":"a lot"') };
  source = new ArraySource(run, tables);
  server = await serve({ source, host: "127.0.0.1", port: 0 });
  expect((await night()).status).toBe(4);
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const nightArgs = () => [
  ...["archive", named, "--gateway", server.url],
  ...["--archive", dir, "--tables", "fills,orders"],
];
const night = (...more: string[]) => runInside([...nightArgs(), ...more]);
const accept = (...words: string[]) => ["maintain", "accept", ...words, "--archive", dir];
const jsonOf = async (...args: string[]) => JSON.parse((await runInside([...args, "--json"])).stdout);

describe("accept", () => {
  it("says what is wrong with a command that accepts nothing, and changes nothing", async () => {
    const refused = { status: 2, code: "invalid_argument" } as const;
    await expectRefusal(accept(named, "fills"), { ...refused, says: ["the reason is missing", "--reason"] });
    await expectRefusal(accept(named, "fills", "--undo"), { ...refused, says: ["is not accepted"] });
    await expectRefusal(accept(named, "fills", "--undo", "--reason", "x"), { ...refused, says: ["--undo"] });
    await expectRefusal(accept(named, "orders", "--reason", "x"), {
      ...refused,
      says: ["orders of this run is COMPLETE", "QUARANTINED, UNVERIFIED or INCOMPLETE"],
    });
    for (const text of ["", "  ", "x".repeat(501), "two\nlines", "\u001b[31mred"])
      await expectRefusal(accept(named, "fills", "--reason", text), { ...refused, says: ["--reason"] });
    const unknown = { status: 2, code: "table_unknown" } as const;
    await expectRefusal(accept(named, "fils", "--reason", "x"), {
      ...unknown,
      says: ["Did you mean fills?"],
    });
    await expectRefusal(accept(named, "bars", "--reason", "x"), { ...unknown, says: ["fills, orders"] });
    await expectRefusal(accept("alpha/nope", "fills", "--reason", "x"), {
      status: 2,
      code: "not_archived",
      says: ["nope"],
    });
    expect((await jsonOf("runs", "--archive", dir)).runs[0].generation).toBe(1);
  });

  it("is told wherever the table's state is, and no command fails by the table any more", async () => {
    const told = await runInside(accept(named, "fills", "--reason", ` ${reason} `));
    expect(told).toMatchObject({ status: 0, stderr: "" });
    expect(told.stdout).toMatch(
      /^alpha\/2022-01-01 {2}fills: QUARANTINED; accepted as it is by \S+@\S+ at \S+Z: one row/,
    );
    const accepted = { at: expect.any(String), by: expect.stringContaining(`@${hostname()}`), reason };

    const again = await night();
    expect(again.status).toBe(0);
    expect(again.stdout).toMatch(/^ {2}fills +QUARANTINED .*1 set aside; /m);
    expect(again.stdout.replace(/\s+/g, " ")).toContain(reason);
    const all = await runInside(["archive", "alpha", "--finished", ...nightArgs().slice(2)]);
    expect(all.stdout).toMatch(
      /^alpha\/2022-01-01 {2}QUARANTINED {2}up to date\n {2}fills: QUARANTINED; 1 set aside; .*: one row has no price/,
    );
    expect(await night("-q")).toEqual({ status: 0, stdout: "", stderr: "" });
    const job = await jsonOf(...nightArgs());
    expect(job).toMatchObject({
      exit: 0,
      runs: [{ changed: false, tables: { fills: { state: "QUARANTINED", accepted } } }],
    });

    const listed = await runInside(["runs", "--archive", dir]);
    expect(listed.stdout).toMatch(/QUARANTINED: 1 row set aside; .*; accepted as it is by .*: one row/s);
    expect((await jsonOf("runs", "--archive", dir)).runs[0].tables).toMatchObject({
      fills: { state: "QUARANTINED", accepted },
      orders: { accepted: null },
    });
    const info = await jsonOf("status", "--archive", dir);
    expect(info).toMatchObject({
      runs: { states: { QUARANTINED: 1 }, unproven: [{ command: null }] },
      contents: { tablesAccepted: 1 },
    });
    expect((await runInside(["status", "--archive", dir])).stdout).toMatch(
      /^accepted +1 table not proven: /m,
    );

    const verified = await runInside(["verify", "--archive", dir]);
    expect(verified.status).toBe(0);
    expect(verified.stdout).toContain(reason);

    const { runs } = await jsonOf("status", "--archive", dir);
    expect(runs.unproven).toMatchObject([{ table: "fills", state: "QUARANTINED", accepted, command: null }]);
    expect((await runInside(["status", "--archive", dir])).stdout).toMatch(
      /fills: QUARANTINED, accepted as it is by .*: one row/,
    );

    const query = await runInside(["query", "SELECT count(*) FROM fills", "--archive", dir]);
    expect(query.stderr.replace(/\s+/g, " ")).toContain(`(QUARANTINED, accepted by`);
    expect(query.stderr.replace(/\s+/g, " ")).toContain(reason);
    const short = await runInside(["export", "--list", "fills", "--archive", dir, "--json"]);
    expect(JSON.parse(short.stderr)).toMatchObject({ withheld: [{ state: "QUARANTINED", accepted }] });
    expect((await runInside(["export", "--list", "fills", "--archive", dir, "--strict"])).status).toBe(4);
  });

  it("is taken back, in words and as JSON, and the next job has it to do with the table again", async () => {
    const undone = await jsonOf(...accept(named, "fills", "--undo"));
    expect(undone).toEqual({
      ...{ instanceId: "alpha", runId: "2022-01-01", table: "fills", state: "QUARANTINED" },
      ...{ generation: 3, accepted: null },
    });
    expect((await night()).status).toBe(4);
    const { runs } = await jsonOf("status", "--archive", dir);
    expect(runs.unproven).toMatchObject([{ accepted: null, command: expect.stringContaining(named) }]);
    const accepted = await jsonOf(...accept(named, "fills", "--reason", reason));
    expect(accepted.accepted).toMatchObject({ reason });
    const { stdout } = await runInside(accept(named, "fills", "--undo"));
    expect(stdout).toBe(
      "alpha/2022-01-01  fills: QUARANTINED; no longer accepted as it is: the next job fetches it\n",
    );
  });

  it("is over with the run's storage version, which the job says", async () => {
    await runInside(accept(named, "fills", "--reason", reason));
    source.storageVersion = "2";
    const plan = await runInside([...nightArgs(), "--dry-run"]);
    expect(plan.stdout).toContain("fills");
    const { status, stdout } = await night();
    expect(status).toBe(4);
    expect(stdout.replace(/\s+/g, " ")).toContain(
      'warning: fills is no longer accepted as it is: the storage version was "1", and is now "2"',
    );
  });
});
