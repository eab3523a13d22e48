import { quarantinedHint } from "../../archive/manifest/attempt-text.ts";
import { damagedHint } from "../../archive/read/whole-files.ts";
import type { VerifyReport } from "../../archive/verify/verify-report.ts";
import { type ErrorCode, usualHints } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";
import { commandsInText } from "../output/commands-in-text.ts";
import type { Repair } from "./verify-repair.ts";

/** A run's report, with the result of the comparison with the gateway. */
export interface RunReport extends VerifyReport {
  /** Whether it was compared with the gateway's facts; null if no gateway was to be asked. */
  readonly compared: boolean | null;
  /** Why the facts were not available; null if they were. */
  readonly notCompared: ErrorCode | null;
  /** What was done about damage; null if nothing was. */
  readonly repair: Repair | null;
}

/** Whether the gateway says that it does not know a run. */
export function isGone(code: ErrorCode): boolean {
  return code === "run_not_found" || code === "instance_not_found";
}

/** What to do about a report's findings; undefined if there is nothing to do. */
export function nextOf(report: RunReport, command: CommandToCopy): string | undefined {
  const next = remedyOf(report, command);
  return next === undefined ? undefined : commandsInText(next, command);
}

function remedyOf(report: RunReport, command: CommandToCopy): string | undefined {
  if (report.remedy !== null) return report.remedy;
  if (report.damaged) return nextOfDamage(report, command);
  if (report.unproven) {
    const { checks } = report;
    const aside = new Set(checks.filter(({ check }) => check === "quarantine").map(({ table }) => table));
    const isAside = checks.some(
      ({ check, level, table }) => check === "state" && level === "unproven" && aside.has(table),
    );
    return isAside ? quarantinedHint : "Archive the run again: only what is missing is fetched.";
  }
  if (report.notCompared === null) return undefined;
  return isGone(report.notCompared)
    ? "Check that this is the run's gateway: if it no longer has the run, there is nothing to compare with."
    : "Run the same command again once the gateway answers.";
}

function nextOfDamage(
  { run, generation, repair, checks }: RunReport,
  command: CommandToCopy,
): string | undefined {
  if (generation === null) return usualHints.archive_damaged;
  if (repair === null) return damagedHint;
  if (repair.archive !== null) {
    const otherwise = "if the gateway no longer has the run, restore the files from a copy";
    return `fetch what is lost: \`${repair.archive}\`; ${otherwise}`;
  }
  if (repair.lost) return "Restore the files from a copy of the archive: the gateway no longer has the run.";
  if (repair.error !== null)
    return (
      repair.error.hint ??
      `Run \`${command("verify", "--repair", formatRun(run))}\` again once that is fixed.`
    );
  const isParquet = (files: readonly string[]) =>
    files.length > 0 && files.every((file) => file.endsWith(".parquet"));
  const inParquet = checks.every(({ level, files }) => level !== "damaged" || isParquet(files));
  return inParquet
    ? `Rebuild its Parquet: \`${command("maintain rebuild", formatRun(run))}\`.`
    : usualHints.archive_damaged;
}
