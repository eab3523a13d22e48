import type { PendingWork } from "../../archive/write/pending-work.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";
import { minuteText } from "../output/minute-text.ts";

/** Uncommitted work in JSON reports, with the command that continues it. */
export function pendingJson(work: PendingWork, command: CommandToCopy) {
  const { instanceId, runId, isCommitted, segments, bytes, changedAt } = work;
  return { instanceId, runId, isCommitted, segments, bytes, changedAt, command: commandOf(work, command) };
}

/** The same as a line. */
export function pendingLine(work: PendingWork, command: CommandToCopy): string {
  const { isCommitted, segments, bytes, changedAt, by } = work;
  const what = {
    archive: countText(segments, "segment"),
    rebuild: "Parquet",
    remap: "rows by another profile",
  };
  const beside = isCommitted ? "in addition to what is committed" : "nothing committed yet";
  const told = `pending: ${what[by]}, ${byteText(bytes)}, last written ${minuteText(changedAt)}; ${beside}`;
  const next = by === "remap" ? "starts it again" : "continues it";
  return `${visible(`${formatRun(work)}  ${told}; \`${commandOf(work, command)}\` ${next}`)}\n`;
}

function commandOf(work: PendingWork, command: CommandToCopy): string {
  const run = formatRun(work);
  if (work.by === "remap") return command("maintain rebuild", run, "--profile", "FILE");
  return command(work.by, run);
}
