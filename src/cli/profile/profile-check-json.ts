import { allFindings, type ProfileCheck } from "../../gateway/profile/check/profile-check.ts";
import { formatRun } from "../../model/run-argument.ts";

/** A check of a profile as one JSON document. */
export function profileCheckJson(check: ProfileCheck): string {
  const { profile, file, gateway, run, documents, tables, none, notDescribed, findings, requests } = check;
  const told = {
    ok: allFindings(check).length === 0,
    profile,
    file,
    gateway,
    run: run === null ? null : formatRun(run),
    requests,
    findings,
    documents,
    tables: tables.map((table) => ({ ...table, run: formatRun(table.run) })),
    none,
    notDescribed,
  };
  return `${JSON.stringify(told, null, 2)}\n`;
}
