import type { Manifest } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { FactsRequest, HistorySource, RunRef, StorageFacts, TableFacts } from "../../model/source.ts";
import { int64Max, int64Min, type Nanoseconds, type TimeBounds } from "../../model/time.ts";
import type { RunEvidence } from "../evidence/run-evidence.ts";
import type { RunDescription } from "../run/run-description.ts";

/**
 * A source's storage facts during one job on one run. If they disappear, half of the job's reasoning would rest on
 * counts and half on none: then it throws, and `lost` tells the job to start over without facts, so that the weaker
 * proof decides everything. No fetched rows are lost.
 */
export class SteadyFacts {
  readonly #source: Pick<HistorySource, "facts" | "otherFacts">;
  readonly #evidence: RunEvidence;
  /** Warnings about the gateway, once each. */
  readonly warnings: string[] = [];
  #seen = false;
  #lost = false;
  #hadBefore = false;
  #run: Pick<RunDescription, "started" | "ended"> | undefined;

  /** `evidence` records all facts. */
  constructor(source: Pick<HistorySource, "facts" | "otherFacts">, evidence: RunEvidence) {
    this.#source = source;
    this.#evidence = evidence;
  }

  /** True once facts have disappeared during the job: from then on there are none. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Adds a warning if facts that proved the run before are missing now. */
  expectAsBefore(committed: Manifest | null, run: Pick<RunDescription, "started" | "ended">): void {
    this.#run = run;
    const held = Object.values(committed?.tables ?? {}).flatMap(holdingsOf);
    this.#hadBefore = held.some(({ certificate }) => (certificate?.gatewayRows ?? null) !== null);
  }

  /** As a source's facts. Throws an error for the run if they disappeared during the job. */
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
    // a gateway may have facts only for whole runs
    const isBounded = bounds.from !== undefined || bounds.to !== undefined;
    if (isBounded && (await this.#source.facts(run, {}, signal)) !== null) return null;
    this.#lost = true;
    this.#warn("the gateway's storage facts for this run disappeared during the job");
    throw new RunvaultError("incomplete", "the gateway's storage facts disappeared during the job", {
      scope: "run",
    });
  }

  /** As a source's other facts; null if there is only one way. */
  async otherFacts(run: RunRef, bounds: TimeBounds, signal?: AbortSignal): Promise<StorageFacts | null> {
    const others = (await this.#source.otherFacts?.(run, bounds, signal)) ?? null;
    const facts = this.#withoutStandIns(others, bounds);
    if (facts !== null) this.#evidence.told(facts, bounds);
    return facts;
  }

  /** Drops the ends of tables without rows if they only repeat those of the run or of the request. */
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
