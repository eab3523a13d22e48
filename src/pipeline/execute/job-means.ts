import type { ArchiveRunsJob } from "../../extract/run/archive-runs.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { TellersOptions } from "../tell/open-tellers.ts";
import type { JobGatewayMeans } from "./job-gateway.ts";
import type { Patience } from "./patient-gateway.ts";

/** What an execution works with, beside its file. */
export interface JobMeans
  extends Pick<ArchiveRunsJob, "tool" | "step" | "watcher" | "wait">,
    JobGatewayMeans {
  readonly clock: () => Nanoseconds;
  /** Asks for an orderly end, as the deadline does. */
  readonly signal: AbortSignal;
  /** In place of the file's deadline, in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** Values given over those of the file, `KEY=VALUE`. */
  readonly set: readonly string[];
  /** Told what comes of telling. */
  readonly log: TellersOptions["log"];
  /** Told what people should know, though nothing is wrong. */
  readonly note: (text: string) => void;
  /** The pauses of waiting for a gateway, for tests. */
  readonly pauses?: Pick<Patience, "firstPauseMs" | "longestPauseMs" | "noteEveryMs"> | undefined;
}

/** The settings of a job that say what is proven enough. */
export function wantedProof({ require }: { readonly require: "any" | "counted" | "hashed" }) {
  // a row hash is wanted of nobody, and `recheck` of a job file asks facts, and streams no rows
  return { require, fingerprint: false, recheckBefore: null };
}
