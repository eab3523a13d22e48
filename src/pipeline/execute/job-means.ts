import type { ArchiveRunsJob } from "../../extract/run/archive-runs.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { NotifiersOptions } from "../tell/open-notifiers.ts";
import type { JobGatewayMeans } from "./job-gateway.ts";
import type { Patience } from "./patient-gateway.ts";

/** What an execution works with, besides its file. */
export interface JobMeans
  extends Pick<ArchiveRunsJob, "tool" | "step" | "watcher" | "wait">,
    JobGatewayMeans {
  readonly clock: () => Nanoseconds;
  /** Asks for an orderly end, as the deadline does. */
  readonly signal: AbortSignal;
  /** Replaces the file's deadline; in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** Values that replace the file's, `KEY=VALUE`. */
  readonly set: readonly string[];
  /** Logs the results of notifications. */
  readonly log: NotifiersOptions["log"];
  /** Prints notes for people about things that are not errors. */
  readonly note: (text: string) => void;
  /** Pauses while waiting for a gateway, for tests. */
  readonly pauses?: Pick<Patience, "firstPauseMs" | "longestPauseMs" | "noteEveryMs"> | undefined;
}

/** The job's settings about sufficient proof. */
export function wantedProof({ require }: { readonly require: "any" | "counted" | "hashed" }) {
  // a job never asks for row hashes, and its `recheck` compares facts without streaming rows
  return { require, fingerprint: false, recheckBefore: null };
}
