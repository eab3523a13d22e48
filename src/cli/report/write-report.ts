import { exit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { isoOf, wallClock } from "../../model/time.ts";
import { version } from "../../model/version.ts";
import { ReportFiles, type WrittenFile, type WrittenReport } from "../../report/report-files.ts";
import { reportRuns } from "../../report/report-runs.ts";
import { askedFigures } from "../metrics/asked-figures.ts";
import type { ReportValues } from "../options/report-values.ts";
import type { Session } from "../process/session.ts";

/** Writes the page of the named runs, and prints the files written. */
export async function writeReport(
  runs: readonly RunRef[],
  { out = pageOf(runs[0]!), specs, force, reconcile, ...values }: ReportValues,
  session: Session,
): Promise<number> {
  const { archive, manifests, options } = await askedFigures(runs, values, session);
  await using files = await ReportFiles.open({ out, specs: specs ?? null, force, outside: archive.dir });
  const made = `Made ${isoOf(wallClock())} by runvault ${version()}, Node ${process.versions.node}.`;
  const written = await files.write(await reportRuns(archive, manifests, { ...options, reconcile, made }));
  await session.print(session.json ? reportJson(runs, written) : reportText(written));
  return exit.done;
}

/** The default file name in the current folder, safe for any ids. */
function pageOf(run: RunRef): string {
  return `${formatRun(run)
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[.-]+/, "")
    .slice(0, 100)}.html`;
}

function reportJson(runs: readonly RunRef[], { page, specs }: WrittenReport): string {
  const told = { file: page.file, bytes: page.bytes, runs: runs.map(formatRun), specs };
  return `${JSON.stringify(told, null, 2)}\n`;
}

function reportText({ page, specs }: WrittenReport): string {
  const line = ({ file, bytes }: WrittenFile) => `${visible(file)}  ${byteText(bytes)}\n`;
  if (specs.length === 0) return line(page);
  const bytes = specs.reduce((sum, spec) => sum + spec.bytes, 0);
  const folder = visible(specs[0]!.file.replace(/[^/\\]*$/, ""));
  return `${line(page)}${folder}  ${countText(specs.length, "spec")}, ${byteText(bytes)}\n`;
}
