import { setTimeout as sleep } from "node:timers/promises";
import type { LogEntry } from "../../model/control.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { lineTime } from "../store/line-time.ts";
import type { RunRows } from "../world/run-rows.ts";
import { type InstanceLife, logText } from "./instance-life.ts";

const pollMs = 50;
/** This many additional lines are read, because lines that became known late come earlier in key order. */
const lateLines = 64;
const stepNs = 3_600_000_000_000n;

/** An instance's log: actions and its runs' events, by the time they became known. */
export interface InstanceLog {
  tail(count: number, now: Nanoseconds): Promise<LogEntry[]>;
  /** The last lines and then new ones, until the signal aborts. */
  follow(count: number, signal: AbortSignal): AsyncGenerator<LogEntry>;
}

export function instanceLog(life: InstanceLife, rows: RunRows, clock: () => Nanoseconds): InstanceLog {
  const tail = async (count: number, now: Nanoseconds): Promise<LogEntry[]> => {
    const asked = life.lines(now);
    const { runs } = await life.at(now);
    const lines: LogEntry[] = [];
    for (let position = runs.length - 1; position >= 0 && lines.length < count; position -= 1) {
      const { run, known } = runs[position]!;
      for (const row of await rows.last(run, "events", count + lateLines, known)) lines.push(entryOf(row));
    }
    return byTime([...lines, ...asked]).slice(-count);
  };

  /** Events that became known after one instant and up to another. */
  const events = async (after: Nanoseconds, now: Nanoseconds): Promise<LogEntry[]> => {
    const { runs } = await life.at(now);
    const lines: LogEntry[] = [];
    for (const { run, known, going } of runs) {
      // a run whose rows were all known by then has nothing new
      if (!going && BigInt(run.complete) <= after) continue;
      const limit = known ?? now;
      if (limit <= after) continue;
      for (const row of await rows.between(run, "events", after, limit)) lines.push(entryOf(row));
    }
    return lines;
  };

  return {
    tail,
    async *follow(count, signal) {
      let known = clock();
      // by number, because an action may come at exactly the instant that was read
      let told = life.lines(known).length;
      yield* await tail(count, known);
      while (!signal.aborted) {
        const now = clock();
        do {
          const next = known + stepNs < now ? known + stepNs : now;
          const lines = life.lines(next).slice(told);
          told += lines.length;
          yield* byTime([...lines, ...(await events(known, next))]);
          known = next;
        } while (known < now && !signal.aborted);
        await sleep(pollMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}

function entryOf(line: string): LogEntry {
  const { kind, severity, message } = JSON.parse(line) as {
    kind: string;
    severity: LogEntry["severity"];
    message: string;
  };
  const time = lineTime(line, "ts_init");
  // an event must not break a log line
  const text = `${kind} ${message}`.replaceAll(/[\r\n]+/g, " ");
  return { time, severity, text: logText(time, severity, text) };
}

function byTime(lines: LogEntry[]): LogEntry[] {
  return lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
}
