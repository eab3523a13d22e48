import type { ListFinding } from "../../extract/choose/list-finding.ts";
import type { RunvaultError } from "../../model/error.ts";
import type { RecordLine } from "../record/job-record.ts";

/** What happens in an execution. */
export type JobEvent =
  /** A line of its record, as it is added. */
  | { readonly kind: "line"; readonly line: RecordLine }
  /** What there is to tell of the gateway's lists. */
  | { readonly kind: "finding"; readonly finding: ListFinding }
  /** What failed beside the runs, or ended them all; what failed of one is in its line. */
  | { readonly kind: "error"; readonly error: RunvaultError };
