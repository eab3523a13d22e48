import { isTableName } from "../model/profile/table.ts";
import type { Asked } from "../serve/wire-hook.ts";
import type { Fault, FaultKind } from "./fault.ts";

/** The faults of one server: how often each may still occur, and the requests that it waits for. */
export class ArmedFaults {
  #left = new Map<Fault, number>();
  readonly #requests = new Map<Fault, number>();
  #isReleased = false;

  constructor(faults: readonly Fault[]) {
    this.arm(faults);
  }

  /** Replaces all faults, with full counts, so that one server can serve many trials of a client. */
  arm(faults: readonly Fault[]): void {
    this.#left = new Map(faults.map((fault) => [fault, fault.times]));
  }

  /** Those of these kinds that may still occur, anywhere. */
  all(kinds: readonly FaultKind[]): Fault[] {
    return [...this.#left]
      .filter(([fault, left]) => left > 0 && kinds.includes(fault.kind))
      .map(([fault]) => fault);
  }

  /** Those of these kinds that may still occur for the document, or for rows or facts of the table. */
  on(asked: Asked, kinds: readonly FaultKind[]): Fault[] {
    return this.all(kinds).filter(({ target }) => target === asked || (target === "*" && isTableName(asked)));
  }

  /** Whether the fault may still occur; counts it. */
  hit(fault: Fault): boolean {
    const left = this.#left.get(fault) ?? 0;
    if (left <= 0) return false;
    this.#left.set(fault, left - 1);
    return true;
  }

  /** Counts a request for a fault with late rows. */
  countRequest(fault: Fault): void {
    this.#requests.set(fault, (this.#requests.get(fault) ?? 0) + 1);
  }

  /** Whether a fault's late rows are still held back. */
  holds(fault: Fault): boolean {
    return !this.#isReleased && (this.#requests.get(fault) ?? 0) < fault.requests;
  }

  /** Late rows appear from now on. */
  releaseLate(): void {
    this.#isReleased = true;
  }
}
