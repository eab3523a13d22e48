import { describe, expect, it } from "vitest";
import { shownView, toldView } from "../../src/archive/manifest/table-view.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { runNotFound } from "../../src/model/usual-errors.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

const serverError = () => new RunvaultError("server_error", "502", { status: 502 });

/** A source that does not know the run any more. */
function gone(): ArraySource {
  const source = new ArraySource(run, world({ fills: hours(9) }));
  source.runs = async () => [];
  source.instances = async () => [];
  return source;
}

/** Other rows under the same ids. */
function another(manners = {}) {
  const rows = world({ fills: hours(9) }).get("fills")!;
  const other = rows.map((row) => ({ ...row, line: row.line.replace(/"price":"[^"]*"/, '"price":"777"') }));
  return new ArraySource(run, new Map([["fills", other]]), manners);
}

describe("a run that its gateway does not know any more", () => {
  it("stays COMPLETE with a note, and nothing is committed", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows));
    const { changed, manifest, warnings } = await tables.archiveRun(gone());
    expect({ changed, state: manifest.state }).toEqual({ changed: false, state: "COMPLETE" });
    expect(warnings).toEqual([expect.stringContaining("what was proven stays")]);
    await tables.expectRows("fills", rows.get("fills")!);
  });

  it("is INCOMPLETE where it went on, recorded once, with its rows still shown, until it is closed", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows, { final: false }));
    const first = await tables.archiveRun(gone());
    expect(first.manifest.tables.fills).toMatchObject({
      state: "INCOMPLETE",
      proven: { state: "OPEN" },
      attempt: { error: { code: "incomplete", hint: expect.stringContaining("--close") } },
    });
    expect((await tables.archiveRun(gone())).manifest.generation).toBe(first.manifest.generation);
    const closed = await tables.archiveRun(gone(), { settings: { close: true } });
    expect(closed.manifest.tables.fills).toMatchObject({ state: "OPEN", attempt: { outcome: "ok" } });
    expect(closed.manifest.closedAt).not.toBe(null);
    const again = await tables.archiveRun(gone());
    expect({ changed: again.changed, state: again.manifest.state }).toEqual({
      changed: false,
      state: "OPEN",
    });
    await tables.expectRows("fills", rows.get("fills")!);
  });

  it("goes on where it comes back", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows, { final: false }));
    await tables.archiveRun(gone(), { settings: { close: true } });
    const { manifest } = await tables.archiveRun(new ArraySource(run, rows));
    expect({ state: manifest.state, closedAt: manifest.closedAt }).toEqual({
      state: "COMPLETE",
      closedAt: null,
    });
  });

  it("is COMPLETE again where its last attempt failed, and that is recorded once", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(9) }));
    await tables.archiveRun(source);
    source.storageVersion = "2";
    source.manners = { refuses: serverError };
    expect((await tables.archiveRun(source)).manifest.state).toBe("INCOMPLETE");
    const { manifest, warnings } = await tables.archiveRun(gone());
    const notes = [expect.stringContaining("what was proven stays")];
    expect({ state: manifest.state, warnings }).toEqual({ state: "COMPLETE", warnings: notes });
    expect(manifest.tables.fills!.attempt).toMatchObject({ outcome: "ok", behindSince: null, notes });
    expect((await tables.archiveRun(gone())).changed).toBe(false);
  });

  it("is closed in what is proven of it, while a table of which nothing is stays INCOMPLETE", async () => {
    await using tables = await TableWorld.create();
    const refuses = ({ table }: RowRequest) => (table === "orders" ? serverError() : undefined);
    const rows = world({ fills: hours(9), orders: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows, { final: false, refuses }));
    const job = { tables: ["fills", "orders"] } as const;
    await tables.archiveRun(gone(), job);
    const { manifest } = await tables.archiveRun(gone(), { ...job, settings: { close: true } });
    expect(manifest.closedAt).not.toBe(null);
    expect(manifest.tables.fills).toMatchObject({ state: "OPEN", attempt: { outcome: "ok" } });
    expect(manifest.tables.orders).toMatchObject({ state: "INCOMPLETE", proven: null });
    expect(manifest.tables.orders!.attempt.error!.hint).not.toContain("--close");
    expect((await tables.archiveRun(gone(), job)).changed).toBe(false);
  });

  it("is recorded as gone where rows were missing before, which are kept when it is closed", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 30).toSpliced(5, 1)]]), {
      final: false,
    });
    await tables.archiveRun(source);
    // the facts count a row that does not come, among those that were proven
    const counting = new ArraySource(run, new Map([["fills", all]]), { final: false });
    source.facts = (...asked) => counting.facts(...asked);
    source.tables.set("fills", all.toSpliced(5, 1));
    const before = (await tables.archiveRun(source, { settings: { sliceRows: 1000 } })).manifest.tables
      .fills!;
    expect(before).toMatchObject({ proven: { state: "OPEN" }, attempt: { error: { code: "incomplete" } } });
    const { attempt } = (await tables.archiveRun(gone())).manifest.tables.fills!;
    expect(attempt.error).toMatchObject({ code: "incomplete", hint: expect.stringContaining("--close") });
    const { manifest } = await tables.archiveRun(gone(), { settings: { close: true } });
    const { holding } = before.attempt;
    expect(holding!.certificate!.rows).toBeGreaterThan(30);
    expect(manifest.tables.fills).toMatchObject({
      state: "OPEN",
      proven: before.proven,
      attempt: { outcome: "ok", holding },
    });
    expect((await reportOf(tables.archive, run)).damaged).toBe(false);
    expect(shownView(manifest.tables.fills, false)!.segments).toEqual(before.proven!.segments);
    const shown = shownView(manifest.tables.fills, true)!;
    expect(shown).toMatchObject({ state: "UNVERIFIED", segments: holding!.segments });
    expect(toldView(manifest.tables.fills!)).toMatchObject({ state: "OPEN", certificate: { rows: 29 } });
  });

  it("is INCOMPLETE in tables that were never asked for before, though what was is whole", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(new ArraySource(run, world({ fills: hours(9) })));
    const { manifest } = await tables.archiveRun(gone(), { tables: ["fills", "orders"] });
    expect(manifest.tables).toMatchObject({
      fills: { state: "COMPLETE" },
      orders: { state: "INCOMPLETE", proven: null, attempt: { error: { code: "incomplete" } } },
    });
    await tables.expectRows("fills", world({ fills: hours(9) }).get("fills")!);
  });

  it("is an error where nothing of it is archived", async () => {
    await using tables = await TableWorld.create();
    await expect(tables.archiveRun(gone())).rejects.toMatchObject({ code: runNotFound(run).code });
  });
});

describe("another run under the id of an archived one", () => {
  it("is refused where it began at another time, and what is proven stays", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows));
    const reset = another({ times: { started: 5n, ended: 9n } });
    const { manifest, changed } = await tables.archiveRun(reset);
    expect(changed).toBe(true);
    expect(manifest.tables.fills).toMatchObject({
      state: "INCOMPLETE",
      proven: { state: "COMPLETE" },
      attempt: { error: { code: "history_identity_conflict" } },
    });
    expect(reset.asked).toEqual([]);
    expect((await tables.archiveRun(reset)).changed).toBe(false);
    // no address outweighs that
    expect((await tables.archiveRun(reset, { settings: { sourceMoved: true } })).changed).toBe(false);
    await tables.expectRows("fills", rows.get("fills")!);
  });

  it("is not what a gateway has that tells no beginning, or 0, while the run goes on: its first row shows that", async () => {
    await using tables = await TableWorld.create();
    const untold = { final: false, times: { started: 0n, ended: 2n } };
    await tables.archiveRun(new ArraySource(run, world({ fills: hours(5) }), untold));
    const times = { started: at(0), ended: at(9) };
    const source = new ArraySource(run, world({ fills: hours(9) }), { times });
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.tables.get("fills")!);
    // and one whose rows are others is refused all the same
    await using others = await TableWorld.create();
    await others.archiveRun(new ArraySource(run, world({ fills: hours(5) }), untold));
    const { manifest } = await others.archiveRun(another({ times }));
    expect(manifest.tables.fills!.attempt.error!.code).toBe("history_identity_conflict");
  });

  it("is refused where the address is another and the first proven row too", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows));
    const moved = Object.assign(another(), { label: "http://elsewhere/api/v1" });
    expect((await tables.archiveRun(moved)).manifest.tables.fills!.attempt.error?.code).toBe(
      "history_identity_conflict",
    );
    await tables.expectRows("fills", rows.get("fills")!);
  });

  it("is refused at another address that answers without end", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(new ArraySource(run, world({ fills: [1] })));
    const moved = Object.assign(another(), { label: "http://elsewhere/api/v1" });
    const chunk = Buffer.alloc(1024 * 1024, `${"x".repeat(65_535)}\n`);
    let most = 0;
    moved.rows = async function* () {
      for (let taken = 1; taken <= 200; taken++) {
        most = Math.max(most, taken);
        yield chunk;
      }
    };
    const { code } = (await tables.archiveRun(moved)).manifest.tables.fills!.attempt.error!;
    expect({ code, most }).toEqual({ code: "history_identity_conflict", most: 65 });
  });

  it("is taken for the same at another address that has its first row, or the last where retention took that", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows, { final: false }));
    const moved = new ArraySource(run, rows, { final: false });
    Object.assign(moved, { label: "http://elsewhere/api/v1" });
    expect((await tables.archiveRun(moved)).manifest.state).toBe("OPEN");
    const later = new ArraySource(run, new Map([["fills", rows.get("fills")!.slice(4)]]), { final: false });
    Object.assign(later, { label: "http://third/api/v1" });
    expect((await tables.archiveRun(later)).manifest.state).toBe("OPEN");
  });

  it("is refused although the address gave a run of which nothing was proven: that shows no row", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(9) });
    await tables.archiveRun(new ArraySource(run, rows));
    const unproven = { ...run, runId: "2022-01-02" };
    const itsRows = new Map([["fills", rowsAt(unproven, "fills", hours(9).map(at))]] as const);
    const failing = new ArraySource(unproven, itsRows, { refuses: serverError });
    await tables.archiveRun(failing, { run: unproven });
    const clone = "http://elsewhere/api/v1";
    const cloned = Object.assign(new ArraySource(unproven, itsRows), { label: clone });
    expect((await tables.archiveRun(cloned, { run: unproven })).manifest.state).toBe("COMPLETE");
    const other = Object.assign(another(), { label: clone, storageVersion: "2" });
    expect((await tables.archiveRun(other)).manifest.tables.fills!.attempt.error?.code).toBe(
      "history_identity_conflict",
    );
    await tables.expectRows("fills", rows.get("fills")!);
  });

  it("is taken at the operator's word for a source that moved", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(new ArraySource(run, world({ fills: hours(9) })));
    const moved = Object.assign(another(), { label: "http://elsewhere/api/v1" });
    moved.storageVersion = "2";
    const { manifest } = await tables.archiveRun(moved, { settings: { sourceMoved: true } });
    expect(manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", moved.tables.get("fills")!);
  });
});
