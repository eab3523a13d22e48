import type { Manifest } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { FactsRequest, HistorySource, RunRef, StorageFacts, TableFacts } from "../../model/source.ts";
import { int64Max, int64Min, type Nanoseconds, type TimeBounds } from "../../model/time.ts";
import type { RunEvidence } from "../evidence/run-evidence.ts";
import type { RunDescription } from "../run/run-description.ts";

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
  #run: Pick<RunDescription, "started" | "ended"> | undefined;

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
  expectAsBefore(committed: Manifest | null, run: Pick<RunDescription, "started" | "ended">): void {
    this.#run = run;
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
    const facts = this.#withoutStandIns(await this.#source.facts(run, bounds, signal, asked), bounds);
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
    const others = (await this.#source.otherFacts?.(run, bounds, signal)) ?? null;
    const facts = this.#withoutStandIns(others, bounds);
    if (facts !== null) this.#evidence.told(facts, bounds);
    return facts;
  }

  /** Drops the ends of tables without rows where they are only those of the run or of the question. */
  #withoutStandIns(facts: StorageFacts | null, { from, to }: TimeBounds): StorageFacts | null {
    const { started = int64Min, ended = int64Max } = this.#run ?? {};
    const isWithin = (ts: Nanoseconds) =>
      ts > started && ts < ended && ts > (from ?? int64Min) && ts < (to ?? int64Max);
    const isStandIn = ({ rows, first, last }: TableFacts) =>
      rows === 0n && first !== undefined && !isWithin(first) && !(last !== undefined && isWithin(last));
    if (facts === null || ![...facts.values()].some(isStandIn)) return facts;
    const plain = [...facts].map(([name, own]): [TableName, TableFacts] => [
      name,
      isStandIn(own) ? { ...own, first: undefined, last: undefined } : own,
    ]);
    return Object.assign(new Map(plain), { text: facts.text });
  }

  #warn(what: string): void {
    const text = `${what}: the proof cannot rest on its counts`;
    if (!this.warnings.includes(text)) this.warnings.push(text);
  }
}
