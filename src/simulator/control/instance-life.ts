import type { LifecycleAction, LogEntry } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import type { DesiredState, ProcessState, RuntimeState } from "../../model/instance-state.ts";
import { formatTime, type Nanoseconds, nsPerSecond } from "../../model/time.ts";
import { type SeenRun, seenRun } from "../seen-run.ts";
import type { BegunRun } from "../world/begun-run.ts";
import type { WorldRun } from "../world/world.ts";
import type { InstanceFaults } from "./instance-fault.ts";

// clock time between an action, or the process's stop, and its effect
const runtimeStops = nsPerSecond;
const processStops = 2n * nsPerSecond;
const processStarts = nsPerSecond;
const processCrashes = 2n * nsPerSecond;
const runtimeStarts = 3n * nsPerSecond;
/** Each started run is rendered to disk, so clients may start only this many. */
const mostBegunRuns = 100;

export interface LifeStates {
  readonly desiredState: DesiredState;
  readonly processState: ProcessState;
  readonly runtimeState: RuntimeState;
}

/** A state that holds from an instant on. */
interface Phase extends LifeStates {
  readonly at: Nanoseconds;
  /** For the instance's log; empty for none. */
  readonly text: string;
  readonly severity: LogEntry["severity"];
}

/** An instance's states and runs at an instant. */
export interface InstanceView extends LifeStates {
  /** Oldest first; the last is the current one. */
  readonly runs: readonly SeenRun[];
}

export interface InstanceLifeOptions {
  readonly instanceId: string;
  /** Its initial runs, oldest first, at least one; only the last may be growing. */
  readonly given: readonly WorldRun[];
  readonly faults: InstanceFaults;
  /** Begins the instance's next run, counted from 0, at an instant. */
  begin(run: number, at: Nanoseconds): BegunRun;
}

/**
 * One instance over time: requested actions, and the desired, process and runtime states that follow. It is a list of
 * phases, each from an instant of the clock, so the state depends only on the clock and the actions.
 */
export class InstanceLife {
  readonly instanceId: string;
  readonly #options: InstanceLifeOptions;
  readonly #begun: BegunRun[] = [];
  /** Runs that neither the clock nor actions change, by id, oldest first. There may be very many. */
  readonly #ended: ReadonlyMap<string, SeenRun>;
  readonly #stops = new Map<string, Nanoseconds>();
  readonly #phases: Phase[] = [];

  constructor(options: InstanceLifeOptions) {
    this.instanceId = options.instanceId;
    this.#options = options;
    const ended = options.given.filter(({ growing }) => !growing);
    this.#ended = new Map(ended.map((run) => [run.runId, seenRun(run, undefined, 0n)]));
  }

  /** A run that ended before any action; undefined for any other. */
  ended(runId: string): SeenRun | undefined {
    return this.#ended.get(runId);
  }

  /** When an action stopped a run, or will stop it; undefined if it runs to its end. */
  stopOf(runId: string): Nanoseconds | undefined {
    return this.#stops.get(runId);
  }

  async at(now: Nanoseconds): Promise<InstanceView> {
    const begun = this.#begun.filter(({ at }) => at <= now).map(({ rendered }) => rendered);
    const growing = this.#options.given.slice(this.#ended.size);
    const seen = [...growing, ...(await Promise.all(begun))].map((run) =>
      seenRun(run, this.#stops.get(run.runId), now),
    );
    const runs = [...this.#ended.values(), ...seen];
    const phase = this.#phases.findLast(({ at }) => at <= now) ?? original;
    return { ...this.#statesOf(phase, runs.at(-1)!), runs };
  }

  /** Log lines about actions and their effects, oldest first. */
  lines(now: Nanoseconds): LogEntry[] {
    return this.#phases
      .filter(({ at, text }) => at <= now && text !== "")
      .map(({ at, severity, text }) => ({ time: at, severity, text: logText(at, severity, text) }));
  }

  /**
   * Performs an action. Effects follow as the clock advances; a start or restart begins a new run. Throws
   * `state_conflict` if nothing would change or an earlier action is still pending, and `limit_exceeded`.
   */
  async act(action: LifecycleAction, now: Nanoseconds): Promise<void> {
    const { runs, processState, runtimeState } = await this.at(now);
    // no await from here on, so that of two simultaneous actions the second sees the first one's phases
    const last = this.#phases.at(-1);
    if (last !== undefined && now < last.at) {
      this.#refuse(
        action,
        `an earlier action is in progress until ${formatTime(last.at)}`,
        "Try again after that time.",
      );
    }
    const isUp = processState === "RUNNING";
    if (action === "start" && isUp) this.#refuse(action, "its process is already running");
    if (action === "stop" && !isUp) this.#refuse(action, `its process is already ${processState}`);
    if (action !== "stop" && this.#begun.length >= mostBegunRuns) {
      throw new RunvaultError(
        "limit_exceeded",
        `${this.instanceId} has already begun ${mostBegunRuns} runs`,
        {
          hint: "Restart the simulator.",
        },
      );
    }

    const desiredState = action === "stop" ? "STOPPED" : "RUNNING";
    const { faults } = this.#options;
    const add = (
      at: Nanoseconds,
      process: ProcessState,
      runtime: RuntimeState,
      text: string,
      severity: LogEntry["severity"] = "INFO",
    ) =>
      this.#phases.push({ at, desiredState, processState: process, runtimeState: runtime, text, severity });
    add(now, processState, runtimeState, `${action} accepted`);
    let down = now;
    if (isUp) {
      if (faults.hit("stop-hangs", this.instanceId)) {
        add(now + processStops, processState, runtimeState, "the process does not stop", "ERROR");
        return;
      }
      const { run, going } = runs.at(-1)!;
      if (going) this.#stops.set(run.runId, now + runtimeStops);
      add(now + runtimeStops, "RUNNING", "STOPPED", `run ${run.runId} stopped`);
      down += processStops;
      add(down, "STOPPED", "STOPPED", "process stopped");
    }
    if (action === "stop") return;
    add(down + processStarts, "RUNNING", "STOPPED", "process started");
    if (faults.hit("start-fails", this.instanceId)) {
      add(down + processCrashes, "CRASHED", "FAILED", "the process crashed", "ERROR");
      return;
    }
    const at = down + runtimeStarts;
    const begun = this.#options.begin(this.#options.given.length + this.#begun.length, at);
    this.#begun.push(begun);
    add(at, "RUNNING", "RUNNING", `run ${begun.runId} began`);
  }

  /** When a run ends by itself, runtime and process end, too, and the desired state is to be stopped. */
  #statesOf(phase: LifeStates, current: SeenRun): LifeStates {
    const { desiredState, processState, runtimeState } = phase;
    if (runtimeState !== "RUNNING" || current.going) return { desiredState, processState, runtimeState };
    return current.run.failed
      ? { desiredState: "STOPPED", processState: "CRASHED", runtimeState: "FAILED" }
      : { desiredState: "STOPPED", processState: "STOPPED", runtimeState: "STOPPED" };
  }

  #refuse(action: LifecycleAction, why: string, hint?: string): never {
    throw new RunvaultError("state_conflict", `cannot ${action} ${this.instanceId}: ${why}`, {
      place: { instance: this.instanceId },
      ...(hint === undefined ? {} : { hint }),
    });
  }
}

/** The initial state: every instance runs its last run, until that ends. */
const original: LifeStates = { desiredState: "RUNNING", processState: "RUNNING", runtimeState: "RUNNING" };

/** A line of the log. */
export function logText(time: Nanoseconds, severity: LogEntry["severity"], text: string): string {
  return `${formatTime(time)} ${severity} ${text}`;
}
