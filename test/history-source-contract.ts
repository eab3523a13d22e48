import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ErrorCode, RunvaultError } from "../src/model/error.ts";
import { documentKinds, type HistorySource, type RowRequest, type RunRef } from "../src/model/source.ts";
import { type FilterName, filterNames, tableNames, tables } from "../src/model/table.ts";

/** A source under test beside what it must agree with, over one finished run that has rows in every table. */
export interface SourceUnderTest extends AsyncDisposable {
  readonly source: HistorySource;
  /** The history itself, as whoever made it has it. */
  readonly truth: HistorySource;
  readonly run: RunRef;
  /** What the source's documents must agree with, where it is not the history itself: not all print them alike. */
  readonly documents?: HistorySource;
}

/** What a source may lack of the contract; by default nothing. */
export interface Leeway {
  /** Kinds of documents that this source does not have. */
  readonly withoutDocuments?: readonly (typeof documentKinds)[number][];
}

/**
 * What every HistorySource promises, whatever is behind it: each test compares the source with the history it is to
 * show. Called once for each kind of source.
 */
export function historySourceContract(
  name: string,
  open: () => Promise<SourceUnderTest>,
  { withoutDocuments = [] }: Leeway = {},
): void {
  describe(`${name} as a history source`, () => {
    let opened: SourceUnderTest;
    let source: HistorySource;
    let truth: HistorySource;
    let run: RunRef;
    let unknownRun: RunRef;
    beforeAll(async () => {
      opened = await open();
      ({ source, truth, run } = opened);
      unknownRun = { ...run, runId: "no such run" };
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    test("names its instances, and their runs, oldest first", async () => {
      const named = (await source.instances()).find(({ instanceId }) => instanceId === run.instanceId);
      expect(named?.runIds).toContain(run.runId);
      const runs = await source.runs(run.instanceId);
      const known = (await truth.runs(run.instanceId))?.filter(({ runId }) => named?.runIds.includes(runId));
      expect(runs).toEqual(known);
    });

    test("has the facts of the whole run, of windows, and of windows without rows", async () => {
      const whole = await truth.facts(run, {});
      const { first, last } = whole!.get("fills")!;
      const middle = (first! + last!) / 2n;
      const windows = [
        {},
        { from: first! },
        { from: first! + 1n },
        { to: last! },
        { to: last! + 1n },
        { from: middle },
        { from: first!, to: middle },
        { from: middle, to: middle },
        { from: 0n, to: 0n },
        { from: -5n, to: 0n },
        { from: last! + 10n ** 18n },
      ];
      for (const bounds of windows)
        expect(await source.facts(run, bounds)).toEqual(await truth.facts(run, bounds));
    });

    test.each(documentKinds)("has the document %s, with the bytes that it has everywhere", async (kind) => {
      const bytes = await source.document(run, kind);
      if (withoutDocuments.includes(kind)) {
        expect(bytes).toBeNull();
        return;
      }
      expect(bytes).not.toBeNull();
      expect(text(bytes)).toBe(text(await (opened.documents ?? truth).document(run, kind)));
    });

    test.each(tableNames)("gives the rows of %s, whole, in windows and up to a limit", async (table) => {
      const all = await linesOf(truth, { ...run, table });
      expect(all.length).toBeGreaterThan(0);
      expect(await linesOf(source, { ...run, table })).toEqual(all);
      const times = all.map(timeOf);
      const middle = times[Math.floor(times.length / 2)]!;
      for (const bounds of [
        { from: middle },
        { to: middle },
        { from: times[0]! + 1n, to: middle + 1n },
        { from: middle, to: middle },
        { from: 0n, to: 0n },
      ]) {
        const { from = times[0]!, to = times.at(-1)! + 1n } = bounds;
        const within = all.filter((_, i) => times[i]! >= from && times[i]! < to);
        expect(await linesOf(source, { ...run, table, ...bounds })).toEqual(within);
      }
      for (const limit of [1, 7, all.length, all.length + 1]) {
        expect(await linesOf(source, { ...run, table, limit })).toEqual(all.slice(0, limit));
      }
    });

    test.each(tables.map((table) => [table.name, table.filters] as const))(
      "filters the rows of %s by each filter that applies to it, and refuses the others",
      async (table, filters) => {
        const all = await linesOf(truth, { ...run, table });
        for (const filter of filterNames) {
          if (!filters.includes(filter)) {
            const request = { ...run, table, filters: { [filter]: "x" } };
            expect(await codeOf(linesOf(source, request))).toBe("invalid_argument");
            continue;
          }
          const value = fieldOf(all.at(-1)!, filter);
          // an empty value is no filter
          if (value !== "") {
            expect(await linesOf(source, { ...run, table, filters: { [filter]: value } })).toEqual(
              all.filter((line) => fieldOf(line, filter) === value),
            );
          }
          const nobody = { [filter]: "nobody's" };
          expect(await linesOf(source, { ...run, table, filters: nobody })).toEqual([]);
        }
      },
    );

    test("says of a run that it does not know that it does not know it", async () => {
      const fills = { ...unknownRun, table: "fills" } as const;
      expect(await codeOf(source.facts(unknownRun, {}))).toBe("run_not_found");
      expect(await codeOf(source.document(unknownRun, "summary"))).toBe("run_not_found");
      expect(await codeOf(linesOf(source, fills))).toBe("run_not_found");
    });

    test("says of an instance that it does not know that it does not know it", async () => {
      const elsewhere = { instanceId: "no such instance", runId: run.runId };
      expect(await codeOf(source.runs(elsewhere.instanceId))).toBe("instance_not_found");
      expect(await codeOf(linesOf(source, { ...elsewhere, table: "fills" }))).toBe("instance_not_found");
    });

    test("refuses an empty id and the word current instead of choosing a run", async () => {
      for (const runId of ["", "current"]) {
        const nobody = { ...run, runId };
        for (const asked of [
          () => source.facts(nobody, {}),
          () => source.document(nobody, "summary"),
          () => linesOf(source, { ...nobody, table: "fills" }),
        ]) {
          expect(refusals).toContain(await codeOf(asked()));
        }
      }
      expect(refusals).toContain(
        await codeOf(linesOf(source, { instanceId: "", runId: "r", table: "fills" })),
      );
    });

    test("ends a request that is given up, before it and in its middle", async () => {
      const table = "fills";
      const gone = AbortSignal.abort(new Error("given up"));
      expect(await codeOf(linesOf(source, { ...run, table, signal: gone }))).toBe("interrupted");
      const giving = new AbortController();
      const code = await codeOf(
        (async () => {
          for await (const _ of source.rows({ ...run, table, signal: giving.signal })) giving.abort();
        })(),
      );
      // what had all come when it was given up may end whole
      expect(["interrupted", undefined]).toContain(code);
    });

    test("lets its reader leave in mid-answer, and answers on", async () => {
      const fills = { ...run, table: "fills" } as const;
      for await (const chunk of source.rows(fills)) {
        expect(chunk.byteLength).toBeGreaterThan(0);
        break;
      }
      expect(await linesOf(source, fills)).toEqual(await linesOf(truth, fills));
    });

    test("gives chunks that stay as they are while others come", async () => {
      const fills = { ...run, table: "fills" } as const;
      const kept: Uint8Array[] = [];
      const copies: Buffer[] = [];
      for await (const chunk of source.rows(fills)) {
        kept.push(chunk);
        copies.push(Buffer.from(chunk));
      }
      expect(Buffer.concat(kept).equals(Buffer.concat(copies))).toBe(true);
    });

    test("is closed once and for all", async () => {
      const other = await open();
      await other.source[Symbol.asyncDispose]();
      await other.source[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
    });
  });
}

/** A run id that is none is wrong usage, or, where the source looks for it, a run that is not there. */
const refusals: (ErrorCode | undefined)[] = ["invalid_argument", "run_not_found", "instance_not_found"];

/** The code that the work fails with; undefined where it does not fail. */
async function codeOf(work: Promise<unknown>): Promise<ErrorCode | undefined> {
  const thrown: unknown = await work.then(
    () => undefined,
    (error: unknown) => error ?? new Error("nothing was thrown"),
  );
  if (thrown === undefined) return undefined;
  return RunvaultError.from(thrown).code;
}

async function linesOf(source: HistorySource, request: RowRequest): Promise<string[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.rows(request)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8").split("\n").slice(0, -1);
}

function fieldOf(line: string, name: FilterName): string {
  return (JSON.parse(line) as Record<FilterName, string>)[name];
}

function timeOf(line: string): bigint {
  return BigInt((JSON.parse(line) as { ts_event: string }).ts_event);
}

function text(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString("utf8");
}
