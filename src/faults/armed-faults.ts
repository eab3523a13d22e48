import { isTableName } from "../model/profile/table.ts";
import type { Asked } from "../serve/wire-hook.ts";
import type { Fault, FaultKind } from "./fault.ts";

/** The faults of one server: how often each may still hit, and what it waits for. */
export class ArmedFaults {
  #left = new Map<Fault, number>();
  readonly #requests = new Map<Fault, number>();
  #isReleased = false;

  constructor(faults: readonly Fault[]) {
    this.arm(faults);
  }

  /**
   * Puts other faults in the place of all there are, each with all of its hits ahead: one server for many a trial of a
   * client.
   */
  arm(faults: readonly Fault[]): void {
    this.#left = new Map(faults.map((fault) => [fault, fault.times]));
  }

  /** Those of the kinds that may still hit, wherever they stand. */
  all(kinds: readonly FaultKind[]): Fault[] {
    return [...this.#left]
      .filter(([fault, left]) => left > 0 && kinds.includes(fault.kind))
      .map(([fault]) => fault);
  }

  /** Those of the kinds that may still hit the document, or rows or facts of the table. */
  on(asked: Asked, kinds: readonly FaultKind[]): Fault[] {
    return this.all(kinds).filter(({ target }) => target === asked || (target === "*" && isTableName(asked)));
  }

  /** True, and counted, as often as the fault may still hit. */
  hit(fault: Fault): boolean {
    const left = this.#left.get(fault) ?? 0;
    if (left <= 0) return false;
    this.#left.set(fault, left - 1);
    return true;
  }

  /** Counts a request that a fault of late rows waits for. */
  countRequest(fault: Fault): void {
    this.#requests.set(fault, (this.#requests.get(fault) ?? 0) + 1);
  }

  /** Whether the late rows of a fault are still held back. */
  holds(fault: Fault): boolean {
    return !this.#isReleased && (this.#requests.get(fault) ?? 0) < fault.requests;
  }

  /** Late rows appear from now on. */
  releaseLate(): void {
    this.#isReleased = true;
  }
}
