// @module-tag slow
import { readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shortfallNotes, shortfallOf } from "../../src/analytics/shortfall.ts";
import { openArchive } from "../../src/archive/archive.ts";
import type { Attempt, Manifest } from "../../src/archive/manifest/manifest.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { formatTime } from "../../src/model/time.ts";
import { serve } from "../../src/serve/server.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

/** fills: 40 rows proven, 60 brought by an attempt that failed; orders: 9 proven, one set aside; bars: nothing proven. */
let made: TableWorld;
let manifest: Manifest;
let dir: string;
let out: string;
beforeAll(async () => {
  made = await TableWorld.create();
  dir = made.archive.dir;
  out = join(tmpdir(), `runvault-shortfall-${process.pid}`);
  const all = world({ fills: hours(80), orders: hours(12), bars: hours(4) });
  const orders = all.get("orders")!;
  orders[3] = { ...orders[3]!, line: orders[3]!.line.replace(/"price":"[^"]*"/, '"price":"a lot"') };
  const source = new ArraySource(run, new Map(all), { final: false });
  const failing = (table: string, from: bigint) => (request: { table: string; from?: bigint | undefined }) =>
    request.table === table && (request.from ?? 0n) >= from
      ? new RunvaultError("server_error", "no luck today")
      : undefined;
  source.tables.set("fills", all.get("fills")!.slice(0, 40));
  source.manners = { final: false, refuses: failing("bars", 0n) };
  const settings = { acceptQuarantine: true };
  await made.archiveRun(source, { settings });
  source.tables = all;
  const fills = failing("fills", at(50));
  const bars = failing("bars", 0n);
  source.manners = { final: false, refuses: (request) => fills(request) ?? bars(request) };
  manifest = (await made.archiveRun(source, { settings, clock: () => at(1_000_001) })).manifest;
});
afterAll(async () => {
  await made[Symbol.asyncDispose]();
  await rm(out, { recursive: true, force: true });
});

const fillsBehind = {
  instance: "alpha",
  run: "2022-01-01",
  table: "fills",
  state: "INCOMPLETE",
  error: "server_error",
};
const commands = {
  query: (table: string) => ["query", `SELECT count(*) AS n FROM ${table}`, "--archive", dir],
  files: (table: string) => ["export", "--list", table, "--archive", dir],
  export: (table: string) => ["export", table, "-f", "csv", "-o", out, "--force", "--archive", dir],
};

describe.each(Object.entries(commands))("%s", (name, command) => {
  test("says what is left out, behind and set aside, and ends with 0", async () => {
    for (const [table, note] of [
      ["bars", "1 table is not complete and was left out: bars of alpha/2022-01-01 (INCOMPLETE)\n"],
      ["equity", "1 table was never archived and is left out: equity of alpha/2022-01-01\n"],
      [
        "fills",
        "1 table is out of date and shown as proven earlier: fills of alpha/2022-01-01 (INCOMPLETE since ",
      ],
      ["orders", "1 table is shown without the rows set aside: orders of alpha/2022-01-01 (1)"],
    ] as const) {
      const { status, stderr } = await runInside(command(table));
      expect([table, status, stderr]).toEqual([table, 0, expect.stringContaining(`warning: ${note}`)]);
    }
    // the first attempt proved them up to its own horizon, which is not the time at which the next one failed
    const until = formatTime(BigInt(manifest.tables.fills!.proven!.certificate!.until!));
    expect((await runInside(command("fills"))).stderr).toContain(
      `since ${manifest.tables.fills!.attempt.behindSince}, server_error; proven up to ts_event ${until})\n`,
    );
  });

  test("says it as one JSON object on standard error with --json", async () => {
    const { stderr, stdout, status } = await runInside([...command("fills"), "--json"]);
    expect(status).toBe(0);
    const { until } = manifest.tables.fills!.proven!.certificate!;
    expect(until).toMatch(/^\d+$/);
    const told = { withheld: [], behind: [{ ...fillsBehind, until }], unproven: [], setAside: [] };
    expect(JSON.parse(stderr)).toMatchObject({ runs: 1, ...told });
    const report = JSON.parse(stdout);
    if (name === "export") expect(report).toMatchObject(told);
    else expect(report).toBeInstanceOf(Array);
    const left = await runInside([...command("bars"), "--json"]);
    expect(JSON.parse(left.stderr).withheld).toMatchObject([{ table: "bars", state: "INCOMPLETE" }]);
    const aside = await runInside([...command("orders"), "--json"]);
    expect(JSON.parse(aside.stderr).setAside).toMatchObject([{ table: "orders", rows: 1 }]);
  });

  test("is exit status 4 with --strict where something is left out or behind, and gives its result all the same", async () => {
    for (const [table, expected] of [
      ["bars", 4],
      ["equity", 4],
      ["fills", 4],
      ["orders", 0],
    ] as const) {
      const plain = await runInside(command(table));
      const strict = await runInside([...command(table), "--strict", "--quiet"]);
      expect([table, strict.status, strict.stdout]).toEqual([table, expected, plain.stdout]);
      expect(strict.stderr.includes("runvault: incomplete: not everything")).toBe(expected === 4);
    }
    const json = await runInside([...command("bars"), "--strict", "--json", "--quiet"]);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: "incomplete", exit: 4 } });
  });

  test("leads on with --strict to what archives a table that never was", async () => {
    const archived = `\`runvault archive --archive ${dir} alpha/2022-01-01 --tables equity\``;
    const never = await runInside([...command("equity"), "--strict", "--quiet"]);
    expect(never.stderr).toContain("not everything requested is proven: 1 table left out\n");
    expect(never.stderr).toContain(
      `hint: equity was never archived for alpha/2022-01-01: ${archived}, or leave out --strict.`,
    );
    // of what was tried, `runs` knows more
    const tried = await runInside([...command("bars"), "--strict", "--quiet"]);
    expect(tried.stderr).toContain(
      `hint: \`runvault runs --archive ${dir}\` says why; archive what it names again`,
    );
    expect(tried.stderr).not.toContain("never archived");
  });

  test("shows with --allow-incomplete what was brought, says that nothing proves it, and not together with --strict", async () => {
    const { status, stderr } = await runInside([...command("fills"), "--allow-incomplete"]);
    expect([status, stderr]).toEqual([
      0,
      "warning: 1 table is shown although not proven: fills of alpha/2022-01-01 (INCOMPLETE, server_error)\n",
    ]);
    const json = await runInside([...command("fills"), "--allow-incomplete", "--json"]);
    const { holding } = manifest.tables.fills!.attempt;
    const rows = holding!.parquet.reduce((sum, file) => sum + file.rows, 0);
    const told = { withheld: [], behind: [], unproven: [{ ...fillsBehind, rows }], setAside: [] };
    expect(JSON.parse(json.stderr)).toEqual({ runs: 1, ...told });
    if (name === "export") expect(JSON.parse(json.stdout)).toMatchObject(told);
    const proven = await runInside([...command("orders"), "--allow-incomplete"]);
    expect(proven.stderr).toBe(
      "warning: 1 table is shown without the rows set aside: orders of alpha/2022-01-01 (1)\n",
    );
    const nothing = await runInside([...command("bars"), "--allow-incomplete"]);
    expect(nothing.stderr).toBe(
      "warning: 1 table is not complete and was left out: bars of alpha/2022-01-01 (INCOMPLETE)\n",
    );
    const never = await runInside([...command("equity"), "--allow-incomplete"]);
    expect(never.stderr).toContain("never archived and is left out: equity of alpha/2022-01-01");
    expect((await runInside([...command("fills"), "--allow-incomplete", "--strict"])).status).toBe(2);
  });

  test("says that an archive without runs has none", async () => {
    const empty = join(out, "..", `runvault-empty-${process.pid}`);
    await openArchive(empty, { create: true });
    try {
      const args = [...command("fills").slice(0, -1), empty];
      const { status, stderr } = await runInside(args);
      expect([status, stderr]).toEqual([0, expect.stringContaining("the archive holds no runs")]);
      const strict = await runInside([...args, "--strict"]);
      expect([strict.status, strict.stderr]).toEqual([
        4,
        expect.stringContaining(`\`runvault archive --archive ${empty} INSTANCE/RUN\``),
      ]);
    } finally {
      await rm(empty, { recursive: true, force: true });
    }
  });
});

test("several tables are told in one line, with what includes them", () => {
  const table = (name: TableName, rows: number) => ({
    ...({ instance: "a", run: "1", table: name, state: "INCOMPLETE", rows } as const),
  });
  const nothing = { runs: 1, behind: [], unproven: [], setAside: [] };
  const withheld = [table("fills", 3), table("bars", 0), { ...table("equity", 0), state: null }];
  expect(shortfallNotes({ ...nothing, withheld })).toEqual([
    "2 tables are not complete and were left out: fills of a/1 (INCOMPLETE), bars of a/1 (INCOMPLETE); --allow-incomplete includes them",
    "1 table was never archived and is left out: equity of a/1",
  ]);
});

describe("with what is not proven allowed", () => {
  /** What is said of fills where their latest attempt was otherwise. */
  const saidOf = (change: Partial<Attempt>) => {
    const fills = manifest.tables.fills!;
    const tables = { ...manifest.tables, fills: { ...fills, attempt: { ...fills.attempt, ...change } } };
    return shortfallOf([{ ...manifest, tables }], ["fills"], true);
  };

  test("a table is behind, as without, whose attempt brought nothing", () => {
    const told = saidOf({ holding: null });
    expect(told).toEqual({ ...shortfallOf([manifest], ["fills"], false), unproven: [] });
    expect(told.behind).toMatchObject([fillsBehind]);
  });

  test("rows are not proven that are kept beside a run which its gateway forgot", () => {
    const told = saidOf({ outcome: "ok", behindSince: null, error: null });
    expect(told).toMatchObject({ behind: [], unproven: [{ state: "UNVERIFIED", error: null }] });
    expect(shortfallNotes(told)).toEqual([
      "1 table is shown although not proven: fills of alpha/2022-01-01 (UNVERIFIED)",
    ]);
  });

  test("a code that only says the state again is left out", () => {
    const error = { ...manifest.tables.fills!.attempt.error!, code: "incomplete" };
    expect(shortfallNotes(saidOf({ error }))[0]).toMatch(/\(INCOMPLETE\)$/);
    expect(shortfallNotes(saidOf({ error, holding: null }))[0]).toMatch(/\(INCOMPLETE since [^,]*; proven /);
  });
});

test("a query hints at the tables never archived, and at `runs` for the others", async () => {
  const sql = "SELECT count(*) FROM fills, equity, metrics, bars";
  const { status, stderr } = await runInside(["query", sql, "--archive", dir, "--strict"]);
  expect(status).toBe(4);
  expect(stderr).toContain("not everything requested is proven: 3 tables left out, 1 table behind\n");
  expect(stderr).toContain(
    `hint: equity, metrics were never archived for alpha/2022-01-01: \`runvault archive --archive ${dir} alpha/2022-01-01 --tables equity,metrics\`. ` +
      `For the rest, \`runvault runs --archive ${dir}\` says why;`,
  );
});

test("a query that names no table has nothing left out", async () => {
  const { status, stderr } = await runInside(["query", "SELECT 1", "--archive", dir, "--strict"]);
  expect([status, stderr]).toEqual([0, ""]);
});

test("archive has no --allow-incomplete: what is not proven is for readers to ask for", async () => {
  const args = ["archive", "alpha/2022-01-01", "--gateway", "http://127.0.0.1:9", "--archive", dir];
  const { status, stderr } = await runInside([...args, "--allow-incomplete"]);
  expect([status, stderr]).toEqual([2, expect.stringContaining("unknown option '--allow-incomplete'")]);
});

describe("a bucket that an attempt changed", () => {
  const rowsOf = async (...more: string[]) => {
    const { stdout } = await runInside([...commands.query("fills"), "-f", "csv", ...more]);
    return Number(stdout.split("\n")[1]);
  };

  test("has two Parquet files in the manifest until it is proven, and each reader sees one of them", async () => {
    const { proven, attempt } = manifest.tables.fills!;
    const [before, later] = [proven!.parquet, attempt.holding!.parquet];
    expect(before.map(({ bucket }) => bucket)).toEqual(later.map(({ bucket }) => bucket));
    expect(before.map(({ file }) => file)).not.toEqual(later.map(({ file }) => file));
    const rows = [before, later].map((files) => files.reduce((sum, file) => sum + file.rows, 0));
    expect(rows[0]).toBe(40);
    expect(rows[1]).toBeGreaterThan(40);

    expect(await rowsOf()).toBe(rows[0]);
    expect(await rowsOf("--allow-incomplete")).toBe(rows[1]);
    for (const [more, files] of [
      [[], before],
      [["--allow-incomplete"], later],
    ] as const) {
      const listed = await runInside([...commands.files("fills"), "--json", ...more]);
      const names = JSON.parse(listed.stdout).map(({ file }: { file: string }) => file.split("/").at(-1));
      expect(names).toEqual(files.map(({ file }) => file));
      const exported = await runInside([...commands.export("fills"), "--json", ...more]);
      expect(JSON.parse(exported.stdout).rows).toBe(files.reduce((sum, file) => sum + file.rows, 0));
      await using source = openArchiveSource(made.archive, { allowIncomplete: more.length > 0 });
      const served = await serve({ source, host: "127.0.0.1", port: 0, onError: () => {} });
      try {
        const query = `instance=${run.instanceId}&run_id=${run.runId}`;
        const answer = await fetch(`${served.url}/history/fills?${query}`);
        expect((await answer.text()).trimEnd().split("\n")).toHaveLength(
          files.reduce((sum, file) => sum + file.rows, 0),
        );
        expect(answer.headers.get("runvault-set-aside")).toBeNull();
        const orders = await fetch(`${served.url}/history/orders?${query}`);
        expect(orders.headers.get("runvault-set-aside")).toBe("1");
        await orders.body?.cancel();
        // nothing proven is 409
        const bars = await fetch(`${served.url}/history/bars?${query}`);
        if (more.length > 0) continue;
        expect(bars.status).toBe(409);
        expect(await bars.json()).toMatchObject({ error: { code: "history_incomplete" } });
      } finally {
        await served.close();
      }
    }
  });

  test("is linked below tables/ as it is proven, also once its types were widened", async () => {
    const linked = async () => {
      const folder = made.archive.layout.tableDir("fills", run);
      const now = (await (await openArchive(dir)).manifest(run))!;
      const names = await readdir(folder);
      const { parquet } = now.tables.fills!.proven!;
      expect(names.sort()).toEqual(parquet.map(({ bucket }) => `${bucket}.parquet`).sort());
      for (const { bucket, file } of parquet) {
        const link = await stat(join(folder, `${bucket}.parquet`));
        expect(link.ino).toBe((await stat(join(made.archive.layout.dataDir(run), file))).ino);
      }
      return now;
    };
    await linked();
    const widened = await runInside([
      "maintain",
      "rebuild",
      "--widen",
      "fills.price=38,18",
      "--archive",
      dir,
    ]);
    expect(widened.status).toBe(0);
    const now = await linked();
    expect(now.tables.fills).toMatchObject({
      state: "INCOMPLETE",
      proven: { state: "OPEN", exactTypes: { price: "DECIMAL(38,18)" } },
      attempt: { behindSince: manifest.tables.fills!.attempt.behindSince },
    });
    expect(await rowsOf()).toBe(40);
    expect(await rowsOf("--allow-incomplete")).toBeGreaterThan(40);
  });
});

describe("runs and verify", () => {
  test("name tables that are behind, since when and why, and rows set aside", async () => {
    const { stdout } = await runInside(["runs", "--archive", dir]);
    const told = stdout.split("\n").slice(3).join("\n");
    const began = manifest.tables.fills!.attempt.behindSince;
    const { until } = manifest.tables.fills!.proven!.certificate!;
    const before = `proven before: OPEN up to ts_event ${formatTime(BigInt(until!))}`;
    expect(told).toMatch(
      /2022-01-01 {2}fills: INCOMPLETE: server_error: no luck today \(.*\); proven before: OPEN up to/,
    );
    expect(told).toContain(`; ${before}; failing since`);
    expect(told).toContain(`failing since ${began}`);
    expect(told).toContain("alpha/2022-01-01  orders: 1 row set aside, as the operator accepted");
    expect(told).toMatch(
      /bars: INCOMPLETE: server_error: .*; nothing is proven; failing since .*, last tried at /,
    );
    const { runs } = JSON.parse((await runInside(["runs", "--archive", dir, "--json"])).stdout);
    expect(runs[0].tables).toMatchObject({
      fills: {
        proven: "OPEN",
        rows: 40,
        until,
        behindSince: began,
        error: "server_error",
        reason: expect.stringContaining("no luck"),
      },
      orders: { proven: "OPEN", setAside: 1, behindSince: null, error: null, reason: null },
      bars: { proven: null, rows: null, until: null, behindSince: expect.any(String) },
    });
    const verified = await runInside(["verify", "--archive", dir]);
    expect(verified.status).toBe(4);
    expect(verified.stdout).toContain(`${before}; failing since ${began}`);
    expect(verified.stdout).toContain("notice: orders quarantine: 1 row set aside, as the operator accepted");
  });

  test("say of an instance without runs that the archive has none of it", async () => {
    for (const args of [
      ["runs", "beta"],
      ["verify", "beta"],
    ]) {
      const { status, stderr } = await runInside([...args, "--archive", dir]);
      expect([status, stderr]).toEqual([2, expect.stringContaining('the archive has no runs of instance "')]);
    }
  });
});
