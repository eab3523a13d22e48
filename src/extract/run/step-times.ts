/** Steps of a run's job, in their order. */
export const runSteps = ["plan", "fetch", "prove", "commit"] as const;
export type RunStep = (typeof runSteps)[number];

/** Seconds by step, including waits for other jobs; a step that was not reached has none. */
export type StepTimes = Readonly<Partial<Record<RunStep, number>>>;

/** Measures the steps of a job one after another. */
export class StepWatch {
  readonly #seconds: Partial<Record<RunStep, number>> = {};
  #sinceMs = performance.now();

  /** Ends a step; the next one begins. */
  end(step: RunStep): void {
    const now = performance.now();
    this.#seconds[step] = Math.round(now - this.#sinceMs) / 1000;
    this.#sinceMs = now;
  }

  get times(): StepTimes {
    return { ...this.#seconds };
  }
}
