import type { Manifest, TableManifest } from "../archive/manifest.ts";
import type { CheckLevel, VerifyCheck } from "../archive/verify-report.ts";
import type { HistorySource, StorageFacts, TableFacts } from "../model/source.ts";
import { type TableName, tableNames } from "../model/table.ts";

export interface AgainstReport {
  /** False where the gateway has no storage facts: then nothing could be compared. */
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
    const table = manifest.tables[name];
    if (table === undefined) continue;
    const facts = await factsUpTo(table.certificate?.until ?? null);
    if (facts === null) asked = false;
    for (const { level, detail } of compare(name, table, facts)) {
      checks.push({ run, table: name, check: "facts", level, ok: level !== "unproven", detail, files: [] });
    }
  }
  return { asked, checks, unproven: checks.some(({ level }) => level === "unproven") };
}

interface Finding {
  readonly level: CheckLevel;
  readonly detail: string;
}

function compare(name: TableName, table: TableManifest, facts: StorageFacts | null): Finding[] {
  if (facts === null) {
    return [{ level: "notice", detail: "cannot be asked: the gateway has no storage facts" }];
  }
  const own = facts.get(name);
  const { certificate } = table;
  if (certificate === null) {
    if (own === undefined || own.rows === 0n) return [{ level: "ok", detail: "absent at the gateway, too" }];
    return [{ level: "unproven", detail: `archived as ABSENT, the gateway says it holds ${own.rows} rows` }];
  }
  if (own === undefined) {
    return [
      { level: "unproven", detail: `${certificate.rows} rows archived, the gateway has no such table` },
    ];
  }
  const differences = differencesOf(certificate, own);
  if (differences.length > 0) return differences.map((detail) => ({ level: "unproven", detail }));
  const upTo = certificate.until === null ? "" : ` before ${certificate.until}`;
  return [{ level: "ok", detail: `the gateway says it holds ${own.rows} rows${upTo}, as archived` }];
}

function differencesOf(certificate: NonNullable<TableManifest["certificate"]>, own: TableFacts): string[] {
  const differences: string[] = [];
  const { rows, quarantined, first, last, schemaFingerprint } = certificate;
  const archived = BigInt(rows) + BigInt(quarantined);
  if (own.rows !== archived) {
    const aside = quarantined === 0 ? "" : `, ${quarantined} of them set aside`;
    differences.push(`${archived} rows archived${aside}, the gateway says it holds ${own.rows}`);
  }
  // rows set aside may be the first or last, and their times are not certified
  if (quarantined === 0) {
    const ends = [
      ["first", first, own.first],
      ["last", last, own.last],
    ] as const;
    for (const [end, key, ts] of ends) {
      if (key?.ts === ts?.toString()) continue;
      differences.push(
        `the ${end} ts_event archived is ${key?.ts ?? "none"}, the gateway says ${ts ?? "none"}`,
      );
    }
  }
  if (schemaFingerprint !== null && schemaFingerprint !== own.schemaFingerprint) {
    differences.push(
      `the schema fingerprint was ${JSON.stringify(schemaFingerprint)}, the gateway now says ${JSON.stringify(own.schemaFingerprint)}`,
    );
  }
  return differences;
}
