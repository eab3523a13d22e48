import type { Manifest } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { FactsRequest, HistorySource, RunRef, StorageFacts } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import type { RunEvidence } from "../evidence/run-evidence.ts";

/**
 * A source's storage facts through one job on one run. Where they were there and are not any more, half of the job's
 * reasons would rest on counts and half on none: then it throws, and `lost` says that the job is to begin anew, without
 * any, so that the weaker proof decides on all of it. Nothing that was fetched is lost by that.
 */
export class SteadyFacts {
  readonly #source: Pick<HistorySource, "facts" | "otherFacts">;
  readonly #evidence: RunEvidence;
  /** What the gateway's operator should hear, once each. */
  readonly warnings: string[] = [];
  #seen = false;
  #lost = false;
  #hadBefore = false;

  /** `evidence` hears all that is told. */
  constructor(source: Pick<HistorySource, "facts" | "otherFacts">, evidence: RunEvidence) {
    this.#source = source;
    this.#evidence = evidence;
  }

  /** True once facts went away in mid-job: from then on there are none. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Facts that the run was proven by before and that are not there any more are warned of. */
  expectAsBefore(committed: Manifest | null): void {
    const held = Object.values(committed?.tables ?? {}).flatMap(holdingsOf);
    this.#hadBefore = held.some(({ certificate }) => (certificate?.gatewayRows ?? null) !== null);
  }

  /** As a source's facts. Throws an error of the run where they went away in mid-job. */
  async facts(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    asked?: FactsRequest,
  ): Promise<StorageFacts | null> {
    if (this.#lost) return null;
    const facts = await this.#source.facts(run, bounds, signal, asked);
    if (facts !== null) {
      this.#seen = true;
      this.#evidence.told(facts, bounds);
      return facts;
    }
    if (!this.#seen) {
      if (this.#hadBefore) this.#warn("the gateway had storage facts for this run before, but has none now");
      return null;
    }
    // a gateway may have facts of a whole run alone
    const isBounded = bounds.from !== undefined || bounds.to !== undefined;
    if (isBounded && (await this.#source.facts(run, {}, signal)) !== null) return null;
    this.#lost = true;
    this.#warn("the gateway's storage facts for this run disappeared during the job");
    throw new RunvaultError("incomplete", "the gateway's storage facts disappeared during the job", {
      scope: "run",
    });
  }

  /** As a source's other facts; null where there is one way alone. */
  async otherFacts(run: RunRef, bounds: TimeBounds, signal?: AbortSignal): Promise<StorageFacts | null> {
    const facts = (await this.#source.otherFacts?.(run, bounds, signal)) ?? null;
    if (facts !== null) this.#evidence.told(facts, bounds);
    return facts;
  }

  #warn(what: string): void {
    const text = `${what}: the proof cannot rest on its counts`;
    if (!this.warnings.includes(text)) this.warnings.push(text);
  }
}
