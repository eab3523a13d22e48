import { acceptanceJson } from "../../archive/manifest/acceptance.ts";
import { attemptHint, attemptReason } from "../../archive/manifest/attempt-text.ts";
import type { TableManifest } from "../../archive/manifest/manifest.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import type { RunReport } from "./archive-report.ts";
import { certificateJson } from "./certificate-json.ts";

/** A run's report as JSON; `toCopy` makes commands in hints work in this command's folders. */
export function reportJson(report: RunReport, toCopy: (text: string) => string) {
  const { instanceId, runId, outcome, seconds, retries, error } = report;
  const hintOf = (hint: string | null = null) => (hint === null ? null : toCopy(hint));
  if (outcome === null) {
    return {
      instanceId,
      runId,
      state: null,
      exit: report.exit,
      retries,
      error: { code: error!.code, message: error!.message, hint: hintOf(error!.hint) },
    };
  }
  const { manifest, changed, resumedSegments, rows, bytes, warnings } = outcome;
  const tables = Object.entries(manifest.tables).map(([name, table]) => {
    const { state, certificate, drift, error: failure } = toldView(table);
    const { behindSince, notes } = table.attempt;
    const proven = provenJson(table);
    const setAside = report.setAside[name] ?? null;
    const why = { error: failure, reason: attemptReason(table), hint: hintOf(attemptHint(table)) };
    const proof = certificate === null ? {} : certificateJson(certificate);
    const accepted = acceptanceJson(table);
    return [name, { state, ...proof, drift, setAside, ...why, proven, behindSince, accepted, notes }];
  });
  return {
    instanceId,
    runId,
    state: manifest.state,
    exit: report.exit,
    generation: manifest.generation,
    horizon: manifest.horizon,
    changed,
    resumedSegments,
    fetchedRows: rows,
    fetchedBytes: bytes,
    seconds,
    retries,
    warnings,
    tables: Object.fromEntries(tables),
  };
}

/** The version of a table that readers show. */
function provenJson({ proven }: TableManifest) {
  if (proven === null) return null;
  const { state, certificate } = proven;
  const { rows = 0, quarantined = 0, until = null, checkedAt = null } = certificate ?? {};
  return { state, rows, setAside: quarantined, until, checkedAt };
}
