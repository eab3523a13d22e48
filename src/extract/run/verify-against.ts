import { acceptanceOf } from "../../archive/manifest/acceptance.ts";
import type { Certificate, Manifest } from "../../archive/manifest/manifest.ts";
import { type TableView, toldView } from "../../archive/manifest/table-view.ts";
import type { CheckLevel, VerifyCheck } from "../../archive/verify/verify-report.ts";
import { isOtherSchema } from "../../model/profile/schema-fingerprint.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { HistorySource, StorageFacts, TableFacts } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { heldWindows, sumRows } from "../plan/held-window.ts";

export interface AgainstReport {
  /** False if the gateway has no storage facts: then nothing could be compared. */
  readonly asked: boolean;
  /** One check a table; a difference is `unproven`: the archive or the gateway has changed since. */
  readonly checks: readonly VerifyCheck[];
  readonly unproven: boolean;
}

/**
 * Asks the gateway's storage facts again, with the bounds of each certificate, and compares. Throws what the source
 * throws.
 */
export async function verifyAgainst(
  source: HistorySource,
  manifest: Manifest,
  signal?: AbortSignal,
): Promise<AgainstReport> {
  const run = { instanceId: manifest.instanceId, runId: manifest.runId };
  const answers = new Map<string, StorageFacts | null>();
  const factsUpTo = async (until: string | null) => {
    const key = until ?? "";
    if (!answers.has(key)) {
      answers.set(key, await source.facts(run, until === null ? {} : { to: BigInt(until) }, signal));
    }
    return answers.get(key) ?? null;
  };
  const checks: VerifyCheck[] = [];
  let asked = true;
  for (const name of tableNames) {
    const archived = manifest.tables[name];
    if (archived === undefined) continue;
    const table = toldView(archived);
    const facts = await factsUpTo(table.certificate?.until ?? null);
    if (facts === null) asked = false;
    const accepted = acceptanceOf(manifest.tables[name]);
    // another count at the gateway is what was accepted, unless it has changed again
    const isAsAccepted = accepted?.gatewayRows === (facts?.get(name)?.rows ?? 0n).toString();
    for (const { level: found, detail } of compare(name, table, facts)) {
      const level = found === "unproven" && isAsAccepted ? "notice" : found;
      checks.push({ run, table: name, check: "facts", level, ok: level !== "unproven", detail, files: [] });
    }
  }
  return { asked, checks, unproven: checks.some(({ level }) => level === "unproven") };
}

interface Finding {
  readonly level: CheckLevel;
  readonly detail: string;
}

function compare(name: TableName, table: TableView, facts: StorageFacts | null): Finding[] {
  if (facts === null) {
    return [{ level: "notice", detail: "not compared: the gateway has no storage facts" }];
  }
  const own = facts.get(name);
  const { certificate } = table;
  if (certificate === null) {
    if (own === undefined || own.rows === 0n)
      return [{ level: "ok", detail: "absent at the gateway as well" }];
    return [
      {
        level: "unproven",
        detail: `archived as ABSENT, but the gateway counts ${countText(own.rows, "row")}`,
      },
    ];
  }
  const rows = certificate.rows + certificate.quarantined;
  if (certificate.until === null && rows > 0 && (own === undefined || own.rows === 0n)) {
    return [{ level: "notice", detail: `the gateway no longer has the ${countText(rows, "row")} archived` }];
  }
  if (own === undefined) {
    return [
      {
        level: "unproven",
        detail: `${countText(certificate.rows, "row")} archived, but the gateway has no such table`,
      },
    ];
  }
  const upTo = certificate.until === null ? "" : ` before ${certificate.until}`;
  const from = isShortened(table, certificate, own) ? own.first : undefined;
  const differences = differencesOf(table, certificate, own, from !== undefined);
  if (differences.length > 0) return differences.map((detail) => ({ level: "unproven", detail }));
  if (from !== undefined) {
    const detail = `the gateway no longer has rows before ${from}, and counts ${own.rows}${upTo}`;
    return [{ level: "notice", detail }];
  }
  const since = certificate.gatewayFrom === null ? "" : ` from ${certificate.gatewayFrom} on`;
  return [
    { level: "ok", detail: `the gateway counts ${countText(own.rows, "row")}${since}${upTo}, as archived` },
  ];
}

/**
 * True if the gateway's rows now begin later than when the table was proven, and their number fits: all rows of the windows
 * after its first row, and at most those of the window that this row lies in.
 */
function isShortened(table: TableView, { first, gatewayFrom }: Certificate, own: TableFacts): boolean {
  const begins = gatewayFrom ?? first?.ts;
  const from = own.first;
  if (from === undefined || begins === undefined || from <= BigInt(begins)) return false;
  const windows = heldWindows(table).filter(({ to }) => to > from);
  const surely = sumRows(windows.filter((window) => window.from >= from));
  return own.rows >= BigInt(surely) && own.rows <= BigInt(sumRows(windows));
}

function differencesOf(
  table: TableView,
  certificate: Certificate,
  own: TableFacts,
  shortened: boolean,
): string[] {
  const differences: string[] = [];
  const { rows, quarantined, gatewayFrom, first, last, schemaFingerprint } = certificate;
  // rows that the gateway no longer had when the table was proven are not expected there
  const begins = gatewayFrom === null ? undefined : BigInt(gatewayFrom);
  const archived = BigInt(
    begins === undefined ? rows + quarantined : sumRows(heldWindows(table).filter(({ to }) => to > begins)),
  );
  if (!shortened && own.rows !== archived) {
    const since = begins === undefined ? "" : ` from ${begins} on`;
    const aside = quarantined === 0 ? "" : `, ${quarantined} of them set aside`;
    differences.push(
      `${countText(archived, "row")} archived${since}${aside}, but the gateway counts ${own.rows}`,
    );
  }
  // rows set aside may be the first or last, and their times are not certified
  if (quarantined === 0) {
    const ends = [
      ["first", shortened ? own.first?.toString() : (gatewayFrom ?? first?.ts), own.first],
      ["last", last?.ts, own.last],
    ] as const;
    for (const [end, here, there] of ends) {
      if (here === there?.toString()) continue;
      differences.push(
        `the ${end} ts_event archived is ${here ?? "none"}, but the gateway's is ${there ?? "none"}`,
      );
    }
  }
  if (schemaFingerprint !== null && isOtherSchema(schemaFingerprint, own.schemaFingerprint)) {
    differences.push(
      `the schema fingerprint was ${JSON.stringify(schemaFingerprint)}, but the gateway's is now ${JSON.stringify(own.schemaFingerprint)}`,
    );
  }
  return differences;
}
