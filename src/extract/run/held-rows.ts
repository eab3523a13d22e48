import { driftOf } from "../../archive/convert/drift.ts";
import type {
  Holding,
  ParquetFile,
  QuarantineFile,
  Segment,
  TableManifest,
} from "../../archive/manifest/manifest.ts";
import { latestView } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { splitSegment } from "../fetch/split-segment.ts";
import { heldWindows } from "../plan/held-window.ts";
import { mostRows } from "./most-rows.ts";
import type { RunContext } from "./run-context.ts";

/** A table's rows from this job and those before, so that no attempt keeps fewer than there were. */
export class HeldRows {
  readonly #table: Table;
  readonly #context: Pick<RunContext, "journal">;
  readonly #former: TableManifest | undefined;
  readonly #convert: (bucket: string, segments: readonly Segment[]) => Promise<void>;

  constructor(
    table: Table,
    context: Pick<RunContext, "journal">,
    former: TableManifest | undefined,
    convert: (bucket: string, segments: readonly Segment[]) => Promise<void>,
  ) {
    this.#table = table;
    this.#context = context;
    this.#former = former;
    this.#convert = convert;
  }

  /**
   * The most rows for each window: from `own`, from `apart`, or from what was here when the job began, if that lies before
   * `from` or `isAnywhere` is set.
   */
  async withFormer(
    own: readonly Segment[],
    apart: readonly Segment[],
    { from, isAnywhere }: { readonly from: Nanoseconds | undefined; readonly isAnywhere: boolean },
  ): Promise<Segment[]> {
    const rowsOf = new Map<string, number>();
    for (const { file, partOf = file, rows } of this.#context.journal.held.of(this.#table.name).segments)
      for (const name of new Set([file, partOf])) rowsOf.set(name, (rowsOf.get(name) ?? 0) + rows);
    const isLeft = (segment: Segment) =>
      segment.rows > (rowsOf.get(segment.file) ?? 0) &&
      (isAnywhere || (from !== undefined && BigInt(segment.from) < from));
    const left = await this.whole(latestView(this.#former)?.segments.filter(isLeft) ?? []);
    const ahead: Segment[] = [];
    if (from !== undefined) for (const segment of left) ahead.push(...(await this.aheadOf(segment, from)));
    const quarantine = this.#allAside();
    const windows = [own, apart, ahead, isAnywhere ? left : []].map((segments) =>
      heldWindows({ segments: [...segments], quarantine }),
    );
    return windows.reduce((all, more) => mostRows(all, more)).flatMap(({ segments }) => segments);
  }

  /** These segments with their Parquet, under a copy of `own`'s certificate that counts their rows. */
  async heldAs(segments: readonly Segment[], own: Holding & { readonly state?: string }): Promise<Holding> {
    const { held } = this.#context.journal;
    const made: NonNullable<ReturnType<typeof held.converted>>[] = [];
    for (const [bucket, of] of Map.groupBy(segments, ({ bucket }) => bucket)) {
      await tolerating(() => this.#convert(bucket, of));
      const one = held.converted(this.#table.name, bucket, of);
      if (one !== undefined) made.push(one);
    }
    made.sort(inOrder);
    const files = new Set(segments.map(({ file }) => file));
    const quarantine = this.#allAside().filter(({ segment }) => files.has(segment));
    const certificate = {
      ...own.certificate!,
      ...{ rows: rowsIn(segments), quarantined: quarantinedRows(quarantine), rowHash: null },
      ...{ first: made[0]?.file.first ?? null, last: made.at(-1)?.file.last ?? null },
    };
    const parquet = made.map(({ file }) => file);
    const drift = driftOf(made.map(({ drift }) => drift));
    // the proven part also has a state
    const { state: _, ...rest } = own;
    return { ...rest, certificate, segments: [...segments], parquet, quarantine, drift };
  }

  /** Splits a segment at an instant, and writes both parts as segments. */
  async partsOf(segment: Segment, at: Nanoseconds): Promise<Segment[]> {
    const { journal } = this.#context;
    const made: Segment[] = [];
    // if this part has itself been proven since, its parts refer to it
    const isProven = this.#former?.proven?.segments.some(({ file }) => file === segment.file);
    const partOf = isProven ? segment.file : (segment.partOf ?? segment.file);
    for (const { draft, text } of splitSegment(segment, await journal.textOf(segment), at)) {
      made.push({ ...(await journal.writeSegment(this.#table.name, draft, text)), partOf });
    }
    return made;
  }

  /** The part of a segment before an instant. */
  async aheadOf(segment: Segment, at: Nanoseconds): Promise<Segment[]> {
    if (BigInt(segment.to) <= at) return [segment];
    const parts = BigInt(segment.from) < at ? await this.partsOf(segment, at) : [];
    return parts.filter(({ to }) => BigInt(to) <= at);
  }

  /** The files that are not lost: the others cannot be compared or converted. */
  async whole<F extends ParquetFile | Segment>(files: readonly F[]): Promise<F[]> {
    const found: F[] = [];
    for (const file of files) {
      try {
        await this.#context.journal.locateWhole(file);
        found.push(file);
      } catch (thrown) {
        if (RunvaultError.from(thrown).code !== "archive_damaged") throw thrown;
      }
    }
    return found;
  }

  /** Rows set aside, from segments held now and before. */
  #allAside(): QuarantineFile[] {
    const { quarantine } = this.#context.journal.held.of(this.#table.name);
    const former = latestView(this.#former)?.quarantine ?? [];
    const files = new Set(quarantine.map(({ file }) => file));
    return [...quarantine, ...former.filter(({ file }) => !files.has(file))];
  }
}

/** Ignores a table's errors: unproven rows that cannot be converted are left out. */
export async function tolerating(convert: () => Promise<void>): Promise<void> {
  try {
    await convert();
  } catch (thrown) {
    if (RunvaultError.from(thrown).scope !== "table") throw thrown;
  }
}

export function rowsIn(segments: readonly Segment[]): number {
  return segments.reduce((sum, { rows }) => sum + rows, 0);
}

export function quarantinedRows(quarantine: readonly QuarantineFile[]): number {
  return quarantine.reduce((sum, { rows }) => sum + rows, 0);
}

/** Compares by the first row. */
export function inOrder(one: { readonly file: ParquetFile }, other: { readonly file: ParquetFile }): number {
  return Number(BigInt(one.file.first.ts) > BigInt(other.file.first.ts)) * 2 - 1;
}
