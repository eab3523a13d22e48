import type { TableName } from "../model/table.ts";
import type { DocumentRoute, Fault, FaultKind } from "./fault.ts";

/** The faults of one server with how often each may still hit. */
export class ArmedFaults {
  private left = new Map<Fault, number>();

  constructor(faults: readonly Fault[]) {
    this.arm(faults);
  }

  /** Puts other faults in the place of all there are, each with all of its hits ahead. */
  arm(faults: readonly Fault[]): void {
    this.left = new Map(faults.map((fault) => [fault, fault.times]));
  }

  /** Those of the kinds that may still hit, wherever they stand. */
  all(kinds: readonly FaultKind[]): Fault[] {
    return [...this.left]
      .filter(([fault, left]) => left > 0 && kinds.includes(fault.kind))
      .map(([fault]) => fault);
  }

  /** Those of the kinds that may still hit rows or facts of the table. */
  on(table: TableName, kinds: readonly FaultKind[]): Fault[] {
    return this.all(kinds).filter(({ target }) => target === table || target === "*");
  }

  /** Those of the kinds that may still hit the document. */
  onDocument(route: DocumentRoute, kinds: readonly FaultKind[]): Fault[] {
    return this.all(kinds).filter(({ target }) => target === route);
  }

  /** True, and counted, as often as the fault may still hit. */
  hit(fault: Fault): boolean {
    const left = this.left.get(fault) ?? 0;
    if (left <= 0) return false;
    this.left.set(fault, left - 1);
    return true;
  }
}
