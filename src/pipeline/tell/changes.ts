import { tableStates } from "../../archive/manifest/manifest.ts";
import { exit, exitPrecedence } from "../../model/error.ts";
import type { Trouble, TroubleKind } from "../record/job-record.ts";

/** What changed from one execution to the next, and what is wrong now. */
export interface Changes {
  /** New, worse than it was, or never told to anybody. */
  readonly worse: readonly Trouble[];
  /** Over, and nobody was told so yet: `mended` says since when. */
  readonly mended: readonly Trouble[];
  /** Told long ago, and still so. */
  readonly reminded: readonly Trouble[];
  /** All that is wrong now, with what was known of it before. */
  readonly troubles: readonly Trouble[];
}

/**
 * What is told once and is never mended: it happened, or cannot be helped. A run that is gone stays among the troubles, so
 * that it is known.
 */
const once: ReadonlySet<TroubleKind> = new Set(["gone", "missed", "died"]);

/** Of what is over by its nature the night after, only what nobody was told of stays. */
const events: ReadonlySet<TroubleKind> = new Set(["missed", "died"]);

/** What is wrong, against what was wrong after the execution before. The same again is told only after `remindNs`. */
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
      // a run that is gone was not mended: that it is gone is told in place of what was wrong with it
      mended.push({ ...old, mended: old.mended ?? at });
    }
  }
  return { worse, mended, reminded, troubles };
}

/** Whether somebody was told of the changes that there were; null: nobody is to be told. */
export interface Heard {
  /** Of what is worse and of what goes on. */
  readonly worse: boolean | null;
  readonly mended: boolean | null;
}

/** The troubles as the record keeps them for the next execution, which tells what nobody could be told of by this one. */
export function troublesTold(
  { worse, mended, reminded, troubles }: Changes,
  heard: Heard,
  at: string,
): readonly Trouble[] {
  const news = new Set(worse.map(({ key }) => key));
  const again = new Set(reminded.map(({ key }) => key));
  const kept = troubles.map((trouble) => {
    // worse than what was told: nobody knows that yet
    if (news.has(trouble.key)) return { ...trouble, told: heard.worse === true ? at : null };
    return again.has(trouble.key) && heard.worse === true ? { ...trouble, told: at } : trouble;
  });
  // what happened once does not wait for somebody who is not there
  const lasting = heard.worse === null ? kept.filter(({ kind }) => !events.has(kind)) : kept;
  return heard.mended === false ? [...lasting, ...mended] : lasting;
}

function isDue(told: string, at: string, remindNs: bigint): boolean {
  return BigInt(Date.parse(at) - Date.parse(told)) * 1_000_000n >= remindNs;
}

function runOf({ instance, run }: Trouble): string {
  return JSON.stringify([instance, run]);
}

/** How bad a trouble of its kind is: what ranks higher is worse. */
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

/** By the order in which statuses count where several apply. */
function exitRank(status: number): number {
  if (status === exit.done) return -1;
  const rank = exitPrecedence.indexOf(status);
  return rank < 0 ? 0 : exitPrecedence.length - rank;
}
