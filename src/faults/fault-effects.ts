import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/profile/table.ts";
import type { Asked, ByteStop, RowStop } from "../serve/wire-hook.ts";
import type { ArmedFaults } from "./armed-faults.ts";
import type { FaultKind } from "./fault.ts";

/** Kinds that refuse a request over either transport. */
const refusalKinds: readonly FaultKind[] = ["rate-limit", "status-409", "status-500", "status-502"];

/** runvault's code where it differs from the one on the wire. */
const ownCodes: Readonly<Record<string, ErrorCode>> = { history_incomplete: "incomplete" };

/** Throws the error for the client if a fault refuses the request. */
export function refuseByFault(faults: ArmedFaults, asked: Asked): void {
  for (const fault of faults.on(asked, refusalKinds)) {
    if (!faults.hit(fault)) continue;
    const message = `refused by fault ${fault.text}`;
    switch (fault.kind) {
      case "rate-limit":
        throw new RunvaultError("rate_limited", message, { retryAfterMs: fault.at * 1000 });
      case "status-409": {
        const { code = "history_identity_conflict" } = fault;
        throw new RunvaultError(ownCodes[code] ?? (code as ErrorCode), message);
      }
      case "status-500":
        throw new RunvaultError("internal", message, { status: 500 });
      default:
        throw new RunvaultError("history_unreachable", message);
    }
  }
}

/** Waits while faults delay the answer. Throws the signal's reason if it aborts. */
export async function delayByFault(faults: ArmedFaults, asked: Asked, signal: AbortSignal): Promise<void> {
  const hits = faults.on(asked, ["delay"]).filter((fault) => faults.hit(fault));
  const delayMs = hits.reduce((sum, { at }) => sum + at, 0);
  if (delayMs === 0) return;
  await sleep(delayMs, undefined, { signal }).catch((thrown: unknown) => {
    throw signal.aborted ? signal.reason : thrown;
  });
}

const rowEndings = { cut: "cut", "cut-clean": "whole", stall: "stalled" } as const;

/** The row after which an answer with rows of the table stops. */
export function rowStops(faults: ArmedFaults, table: TableName): RowStop[] {
  return faults.on(table, ["cut", "cut-clean", "stall"]).map((fault) => ({
    rows: fault.at,
    ending: rowEndings[fault.kind as keyof typeof rowEndings],
    hit: () => faults.hit(fault),
  }));
}

/** The byte after which an answer with rows of the table stops. */
export function byteStops(faults: ArmedFaults, table: TableName): ByteStop[] {
  return faults.on(table, ["cut-bytes", "cut-bytes-clean"]).map((fault) => ({
    bytes: fault.at,
    ending: fault.kind === "cut-bytes" ? ("cut" as const) : ("whole" as const),
    hit: () => faults.hit(fault),
  }));
}
