import { tableStates } from "../../archive/manifest/manifest.ts";
import { exit, exitPrecedence } from "../../model/error.ts";
import type { Trouble, TroubleKind } from "../record/job-record.ts";

/** Changes between two executions, and current troubles. */
export interface Changes {
  /** New, worse than before, or never reported to anyone. */
  readonly worse: readonly Trouble[];
  /** Resolved but not yet reported; `mended` says since when. */
  readonly mended: readonly Trouble[];
  /** Reported long ago, and still there. */
  readonly reminded: readonly Trouble[];
  /** All current troubles, with what was known about them. */
  readonly troubles: readonly Trouble[];
}

/**
 * Kinds that are reported once and never resolved: they happened, or cannot be helped. A run that is gone stays among
 * the troubles, so it is known.
 */
const once: ReadonlySet<TroubleKind> = new Set(["gone", "missed", "died"]);

/** Events, which are over by the next night; kept only if nobody was notified. */
const events: ReadonlySet<TroubleKind> = new Set(["missed", "died"]);

/**
 * Compares troubles with those after the previous execution. Unchanged ones are reported again only after `remindNs`.
 */
export function changesOf(
  before: readonly Trouble[],
  now: readonly Trouble[],
  at: string,
  remindNs: bigint,
): Changes {
  const known = new Map(before.map((trouble) => [trouble.key, trouble]));
  const current = new Map(now.map((trouble) => [trouble.key, trouble]));
  const worse: Trouble[] = [];
  const mended: Trouble[] = [];
  const reminded: Trouble[] = [];
  const troubles: Trouble[] = [];

  for (const found of current.values()) {
    const old = known.get(found.key);
    const isWorse = old === undefined || levelRank(found) > levelRank(old);
    const trouble: Trouble = {
      ...found,
      level: old === undefined || isWorse ? found.level : old.level,
      since: old?.since ?? found.since,
      told: old?.told ?? null,
      mended: null,
    };
    troubles.push(trouble);
    if (isWorse || trouble.told === null) worse.push(trouble);
    else if (!once.has(trouble.kind) && isDue(trouble.told, at, remindNs)) reminded.push(trouble);
  }
  const goneRuns = new Set([...current.values()].filter(({ kind }) => kind === "gone").map(runOf));
  for (const old of known.values()) {
    if (current.has(old.key)) continue;
    if (events.has(old.kind)) {
      if (old.told !== null) continue;
      troubles.push(old);
      worse.push(old);
    } else if (old.kind !== "gone" && !(old.run !== null && goneRuns.has(runOf(old)))) {
      // a run that is gone was not resolved: its loss is reported instead of its earlier trouble
      mended.push({ ...old, mended: old.mended ?? at });
    }
  }
  return { worse, mended, reminded, troubles };
}

/** Whether changes reached somebody; null: there is nobody to notify. */
export interface Heard {
  /** For worse and continuing troubles. */
  readonly worse: boolean | null;
  readonly mended: boolean | null;
}

/** The troubles for the record. The next execution reports those that could not be reported by this one. */
export function troublesTold(
  { worse, mended, reminded, troubles }: Changes,
  heard: Heard,
  at: string,
): readonly Trouble[] {
  const news = new Set(worse.map(({ key }) => key));
  const again = new Set(reminded.map(({ key }) => key));
  const kept = troubles.map((trouble) => {
    // worse than last reported, and nobody knows yet
    if (news.has(trouble.key)) return { ...trouble, told: heard.worse === true ? at : null };
    return again.has(trouble.key) && heard.worse === true ? { ...trouble, told: at } : trouble;
  });
  // without recipients, events are not kept
  const lasting = heard.worse === null ? kept.filter(({ kind }) => !events.has(kind)) : kept;
  return heard.mended === false ? [...lasting, ...mended] : lasting;
}

function isDue(told: string, at: string, remindNs: bigint): boolean {
  return BigInt(Date.parse(at) - Date.parse(told)) * 1_000_000n >= remindNs;
}

function runOf({ instance, run }: Trouble): string {
  return JSON.stringify([instance, run]);
}

/** Ranks the levels of one kind: higher is worse. */
function levelRank({ kind, level }: Trouble): number {
  switch (kind) {
    case "table":
      return (tableStates as readonly string[]).indexOf(level);
    case "job":
    case "run":
    case "after":
      return exitRank(Number(level));
    case "disk":
      return -Number(level);
    default:
      return 0;
  }
}

/** Ranks exit statuses in their order of precedence. */
function exitRank(status: number): number {
  if (status === exit.done) return -1;
  const rank = exitPrecedence.indexOf(status);
  return rank < 0 ? 0 : exitPrecedence.length - rank;
}
