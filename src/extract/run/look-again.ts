import type { HistorySource, StorageFacts } from "../../model/source.ts";
import { isOfOtherVersion } from "../evidence/evidence-record.ts";
import type { Lack } from "../evidence/lacking.ts";
import type { RunEvidence } from "../evidence/run-evidence.ts";
import type { TableArchiver } from "./table-archiver.ts";

/** What looking again needs from a run's job. */
export interface Looks {
  readonly source: Pick<HistorySource, "reconnect">;
  readonly evidence: RunEvidence;
  readonly jobs: readonly TableArchiver[];
  readonly together: (step: (table: TableArchiver) => Promise<void>) => Promise<void>;
  readonly factsNow: () => Promise<StorageFacts | null>;
  /** Fetches the plan, compares it with newer facts, and returns these. */
  readonly settle: () => Promise<StorageFacts | null>;
  /** True if six descriptions in a row report a new version: then rows may rightly differ. */
  readonly hasNewVersion: () => Promise<boolean>;
  readonly onNote: (text: string) => void;
}

/** How often a window is requested again before it counts as lacking rows. */
const mostLooks = 5;

/**
 * How many totals are requested before rows are proven: another node may count more. If two of three nodes lack rows, three
 * would miss the third in one of five cases.
 */
const looksAhead = 5;

/**
 * Requests again, each time on new connections, what is less here than the gateway reported or sent: a node that lags
 * behind the others may have answered. Returns the latest facts.
 */
export async function lookAgain(looks: Looks, latest: StorageFacts | null): Promise<StorageFacts | null> {
  const { source, evidence, jobs, together, factsNow, settle, onNote } = looks;
  if (latest !== null && jobs.some((table) => table.mayProve)) {
    for (let look = 0; look < looksAhead; look++) {
      source.reconnect?.();
      await factsNow();
    }
  }
  let facts = latest;
  for (let look = 0; ; look++) {
    let lacks = await lackingOf(jobs);
    const isOfOther = ({ seen }: Lack) => isOfOtherVersion(seen, evidence.version);
    if (look === 0 && [...lacks.values()].some((some) => some.some(isOfOther))) {
      if (await looks.hasNewVersion()) for (const [table, own] of lacks) table.letGoOtherVersions(own);
      lacks = await lackingOf(jobs);
    }
    if (lacks.size > 0) {
      await together(async (table) => {
        const own = lacks.get(table) ?? [];
        if (own.length > 0) await table.letGoRetained(facts, own);
        const left = own.length > 0 && look === 0 ? await table.lacking() : [];
        if (left.length > 0) await table.letGoOlder(left, factsNow);
      });
      lacks = await lackingOf(jobs);
    }
    if (look === mostLooks || (lacks.size === 0 && !jobs.some((table) => table.disagrees(facts))))
      return facts;
    if (look === 0) onNote("fewer rows here than the gateway reported or sent: trying new connections");
    source.reconnect?.();
    facts = await factsNow();
    await together(async (table) => {
      const own = lacks.get(table);
      if (own !== undefined) await table.planAgain(facts, own, look + 1);
    });
    facts = await settle();
  }
}

async function lackingOf(jobs: readonly TableArchiver[]): Promise<Map<TableArchiver, Lack[]>> {
  const lacks = new Map<TableArchiver, Lack[]>();
  for (const table of jobs) {
    const own = await table.lacking();
    if (own.length > 0) lacks.set(table, own);
  }
  return lacks;
}
