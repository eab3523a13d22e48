import type { ListFinding } from "../../extract/choose/list-finding.ts";
import type { RunvaultError } from "../../model/error.ts";
import type { RecordLine } from "../record/job-record.ts";

/** Events of an execution. */
export type JobEvent =
  /** A line of its record, when it is added. */
  | { readonly kind: "line"; readonly line: RecordLine }
  /** A finding about the gateway's lists. */
  | { readonly kind: "finding"; readonly finding: ListFinding }
  /** A failure apart from the runs, or one that ended them all; a single run's failure is in its line. */
  | { readonly kind: "error"; readonly error: RunvaultError };
