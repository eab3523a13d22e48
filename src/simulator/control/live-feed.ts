import { setTimeout as sleep } from "node:timers/promises";
import type { LiveFeed, LiveValue } from "../../model/control.ts";
import { type Nanoseconds, nsPerSecond } from "../../model/time.ts";
import { type SeenRun, seenRun } from "../seen-run.ts";
import { lineTime } from "../store/line-time.ts";
import type { RunRows } from "../world/run-rows.ts";
import type { WorldRun } from "../world/world.ts";
import type { CatalogResource } from "./catalog.ts";

/** How often the clock is checked, in wall time. */
const pollMs = 50;
/** SAMPLED values are sent at whole multiples of this clock time. */
export const sampleNs = 10n * nsPerSecond;
/** The most clock time to read at once, however far the clock jumps: at most about ten thousand rows. */
const stepNs = 600n * nsPerSecond;
const replayBatchRows = 100;

export interface LiveFeedOptions {
  readonly run: WorldRun;
  readonly rows: RunRows;
  readonly clock: () => Nanoseconds;
  /** When the run was or will be stopped, as far as is known. */
  stopAt(): Nanoseconds | undefined;
}

/** A resource of a running run, its values revealed by the clock. It ends with the run. */
export function liveFeed(
  { resource, table, contract, identity }: CatalogResource,
  { run, rows, clock, stopAt }: LiveFeedOptions,
): LiveFeed {
  const filters = [["resource_key", resource.resourceKey]] as const;
  const seen = (): SeenRun => seenRun(run, stopAt(), clock());
  const value = (lines: readonly string[], replayed = false): LiveValue => ({ table, rows: lines, replayed });

  /** All rows of the newest instant, which together are the value; none if nothing is known yet. */
  const newest = async (known: Nanoseconds): Promise<string[]> => {
    const [line] = await rows.last(run, table, 1, known, filters);
    return line === undefined ? [] : await instant(lineTime(line, "ts_event"), known);
  };

  const instant = async (time: Nanoseconds, known: Nanoseconds): Promise<string[]> => {
    const found: string[] = [];
    const bounds = { from: time, to: time + 1n };
    for await (const line of rows.all(run, table, known, filters, bounds)) found.push(line);
    return found;
  };

  async function* replay(known: Nanoseconds): AsyncGenerator<LiveValue> {
    if (contract.replayPolicy === "NONE") return;
    if (contract.replayPolicy === "LAST") {
      const last =
        contract.deliveryModel === "EVENT"
          ? await rows.last(run, table, 1, known, filters)
          : await newest(known);
      if (last.length > 0) yield value(last, true);
      return;
    }
    let batch: string[] = [];
    for await (const line of rows.all(run, table, known, filters)) {
      batch.push(line);
      if (batch.length < replayBatchRows) continue;
      yield value(batch, true);
      batch = [];
    }
    if (batch.length > 0) yield value(batch, true);
  }

  /** The values of one step of the clock. */
  async function* step(after: Nanoseconds, known: Nanoseconds): AsyncGenerator<LiveValue> {
    switch (contract.deliveryModel) {
      case "EVENT":
        for (const line of await rows.between(run, table, after, known, filters)) yield value([line]);
        return;
      case "SNAPSHOT": {
        const changed = await rows.between(run, table, after, known, filters);
        const times = [...new Set(changed.map((line) => lineTime(line, "ts_event")))].sort((a, b) =>
          a < b ? -1 : 1,
        );
        const [shown] = await rows.last(run, table, 1, after, filters);
        // late rows for an instant that is no longer the newest change nothing
        const since = shown === undefined ? undefined : lineTime(shown, "ts_event");
        for (const time of times) {
          if (since === undefined || time >= since) yield value(await instant(time, known));
        }
        return;
      }
      case "SAMPLED": {
        if (known / sampleNs === after / sampleNs) return;
        const whole = await newest(known);
        if (whole.length > 0) yield value(whole);
      }
    }
  }

  return {
    resourceKey: resource.resourceKey,
    contract,
    identity,
    async *values(signal) {
      let known = limitOf(seen());
      yield* replay(known);
      for (;;) {
        const shown = seen();
        const limit = limitOf(shown);
        while (known < limit && !signal.aborted) {
          const next = known + stepNs < limit ? known + stepNs : limit;
          yield* step(known, next);
          known = next;
        }
        if (!shown.going || signal.aborted) return;
        await sleep(pollMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}

/** The instant up to which rows exist. */
function limitOf({ known, run }: SeenRun): Nanoseconds {
  return known ?? BigInt(run.complete);
}
