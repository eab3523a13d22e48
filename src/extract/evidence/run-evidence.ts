import { everything } from "../../archive/manifest/evidence.ts";
import type { Entry } from "../../archive/write/journal.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { StorageFacts } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import type { Came } from "../plan/row-key.ts";
import { EvidenceRecord, isNewVersion } from "./evidence-record.ts";

/** What the gateway reported and sent about each table of one run. It survives a restart of the attempt. */
export class RunEvidence {
  readonly #tables = new Map<TableName, EvidenceRecord>();
  /** The run's storage version in its latest description; null for none. */
  version: string | null = null;
  /** Earlier versions in this command. */
  readonly #before = new Set<string>();
  /** True once facts have proved to respect time bounds: until then, a window's count means nothing. */
  countsWindows = false;

  of(table: TableName): EvidenceRecord {
    let record = this.#tables.get(table);
    if (record === undefined) {
      record = new EvidenceRecord();
      this.#tables.set(table, record);
    }
    return record;
  }

  /** The version of the rows here: still the previous one while they are compared with those of a new one. */
  versionHere: string | null = null;

  /** Records the version in the run's description; `isHere` if the rows here have that version. */
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
        // for a window the count is enough: finding its ends would require reading its rows
        first: (from === undefined && first?.toString()) || null,
        last: (from === undefined && last?.toString()) || null,
        hash: null,
        version: this.version,
      });
    }
  }

  /** Records rows that were sent but not kept: their number, and the window that they span from end to end. */
  sent(table: TableName, { from, to, rows, firstKey, lastKey }: Came): void {
    const ends = { first: from.toString(), last: (to - 1n).toString() };
    // the window is already known to begin or end with a row
    const isKnown = this.of(table).items.some(
      (item) =>
        item.isOlder !== true &&
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
