import { everything } from "../../archive/manifest/evidence.ts";
import type { Entry } from "../../archive/write/journal.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { StorageFacts } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import type { Came } from "../plan/row-key.ts";
import { EvidenceRecord, isNewVersion } from "./evidence-record.ts";

/** What a command was told or sent about each table of one run. It survives a restart of the attempt. */
export class RunEvidence {
  readonly #tables = new Map<TableName, EvidenceRecord>();
  /** The run's storage version by the last statement; null for none. */
  version: string | null = null;
  /** Those that were said in this command before that one. */
  readonly #before = new Set<string>();
  /** True once facts were shown to keep to time bounds: a count of a window says nothing before. */
  countsWindows = false;

  of(table: TableName): EvidenceRecord {
    let record = this.#tables.get(table);
    if (record === undefined) {
      record = new EvidenceRecord();
      this.#tables.set(table, record);
    }
    return record;
  }

  /** That which the rows here came under: the one before while they are compared with those of a new one. */
  versionHere: string | null = null;

  /** Takes note of the version that the run is said to have; `isHere` where the rows here are of that. */
  isOf(version: string | null, isHere = true): void {
    if (this.version !== null && this.version !== version) this.#before.add(this.version);
    this.version = version;
    if (isHere) this.versionHere = version;
  }

  /** Whether that version is new to this command and the record. */
  get isNew(): boolean {
    const recorded = [...this.#tables.values()].flatMap(({ items }) => items.map(({ version }) => version));
    const others = recorded.filter((version) => version !== null && version !== this.version) as string[];
    const isOlder = [...this.#tables.values()].some(({ items }) =>
      items.some((item) => item.isOlder && item.version === this.version),
    );
    return !isOlder && isNewVersion(this.version ?? undefined, new Set([...this.#before, ...others]));
  }

  /** Records facts, from any transport. */
  told(facts: StorageFacts, { from, to }: TimeBounds): void {
    const isWhole = from === undefined && to === undefined;
    if (!isWhole && !this.countsWindows) return;
    for (const [table, { rows, first, last }] of facts) {
      const record = this.of(table);
      if (first !== undefined && from === undefined) record.begins(first);
      // facts that name ends have at least one row
      if (rows === 0n && first === undefined) continue;
      record.learn({
        by: "told",
        // rows that only the archive still has are before the first
        from: (from ?? first ?? everything.from).toString(),
        to: (to ?? everything.to).toString(),
        rows: Math.max(1, Number(rows)),
        // of a window its count is enough: looking for its ends would take reading them
        first: (from === undefined && first?.toString()) || null,
        last: (from === undefined && last?.toString()) || null,
        hash: null,
        version: this.version,
      });
    }
  }

  /** Takes note of rows that were sent and are not kept: so many from the first instant of a window to its last. */
  sent(table: TableName, { from, to, rows, firstKey, lastKey }: Came): void {
    const ends = { first: from.toString(), last: (to - 1n).toString() };
    // already known to begin or end with a row
    const isKnown = this.of(table).items.some(
      (item) =>
        item.version === this.version &&
        ((item.first === ends.first && item.firstKey === firstKey) ||
          (item.last === ends.last && item.lastKey === lastKey)),
    );
    if (rows === 1 && isKnown) return;
    this.of(table).learn({
      ...{ by: "brought", from: ends.first, to: to.toString(), rows, ...ends },
      ...(firstKey === undefined ? {} : { firstKey }),
      ...(lastKey === undefined ? {} : { lastKey }),
      ...{ hash: null, version: this.version },
    });
  }

  /** Entries to write to the journal before the next one. */
  unnoted(): Entry[] {
    const entries: Entry[] = [];
    for (const [table, record] of this.#tables) {
      const unnoted = record.unnoted();
      if (unnoted === undefined) continue;
      const { evidence, isAfresh } = unnoted;
      entries.push({ kind: "seen", table, evidence: [...evidence], isAfresh });
    }
    return entries;
  }
}
