import type { ToldLine, Trouble } from "../record/job-record.ts";
import { type Changes, type Heard, troublesTold } from "./changes.ts";
import { type MessageOf, messageOf } from "./message.ts";
import type { Hears, Notifiers } from "./open-notifiers.ts";
import { type TellContext, tellOne, wholeTime } from "./tell-one.ts";

/** The results of notifications, for the record. */
export interface ToldChanges {
  readonly told: readonly ToldLine[];
  /** All current troubles, with when they were reported. */
  readonly troubles: readonly Trouble[];
}

/**
 * Tells those who get messages of changes, side by side; nothing where nothing changed that they are to hear of. Never throws,
 * and takes about a minute at most. For what an execution found out there is `tellEnd`; this is for what is known without
 * one, such as a job file that can no longer be read: `begin.id` is null then.
 */
export async function tellChanges(notifiers: Notifiers, changed: MessageOf): Promise<ToldChanges> {
  using time = wholeTime(notifiers.times, notifiers.signal);
  return await tellListeners(notifiers, changed, { ...notifiers, signal: time.signal });
}

/** The same within the caller's time limit. */
export async function tellListeners(
  { listeners, scrubber }: Pick<Notifiers, "listeners" | "scrubber">,
  changed: MessageOf,
  context: TellContext,
): Promise<ToldChanges> {
  const { changes, result } = changed;
  const telling = listeners.map(({ hears, notifier }) => {
    const heard = changesFor(changes, hears);
    const isNews = heard.worse.length + heard.mended.length + heard.reminded.length > 0;
    return isNews ? tellOne(notifier(messageOf({ ...changed, changes: heard }, scrubber)), context) : null;
  });
  const lines = await Promise.all(telling);
  const heard = (change: "worse" | "mended"): boolean | null => {
    if (listeners.length === 0) return null;
    const wanting = lines.filter((_, index) => listeners[index]!.hears.has(change));
    // no notification is needed if nobody wants it
    return wanting.length === 0 || wanting.some((line) => line?.result !== "failed");
  };
  const all: Heard = { worse: heard("worse"), mended: heard("mended") };
  return {
    told: lines.filter((line) => line !== null),
    troubles: troublesTold(changes, all, result.at),
  };
}

/** The changes that a recipient wants. */
function changesFor(changes: Changes, hears: Hears): Changes {
  const { worse, mended, reminded } = changes;
  return {
    ...changes,
    worse: hears.has("worse") ? worse : [],
    reminded: hears.has("worse") ? reminded : [],
    mended: hears.has("mended") ? mended : [],
  };
}
