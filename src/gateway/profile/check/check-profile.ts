import { RunvaultError } from "../../../model/error.ts";
import type { ColumnSource, RowMap } from "../../../model/profile/row-map.ts";
import { type Table, tableNamed, tableNames } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { HttpSession } from "../../http/http-session.ts";
import type { GatewayOptions } from "../../options.ts";
import type { Profile } from "../profile.ts";
import { Asker } from "./asker.ts";
import { DocumentChecks } from "./check-documents.ts";
import { checkTable, requestsOfTable } from "./check-table.ts";
import type { Finding, ProfileCheck, TableCheck } from "./profile-check.ts";

/** What a check is about, and what it is told. */
export interface CheckRequest {
  /** How to reach the gateway, with the values of the profile's headers and keys. */
  readonly gateway: GatewayOptions;
  readonly profile: Profile;
  /** Default: the first finished run that the documents name. */
  readonly run?: RunRef | undefined;
  readonly signal: AbortSignal;
}

/**
 * Holds a profile against its gateway by a few small requests: what each path answers, where each column comes from,
 * whether the gateway heeds what it is asked, and which proof each table can reach. Throws `invalid_argument` where the
 * profile has no REST; everything that the gateway does is a finding.
 */
export async function checkProfile({
  gateway,
  profile,
  run: wanted,
  signal,
}: CheckRequest): Promise<ProfileCheck> {
  const { rest } = profile;
  if (rest === undefined) {
    throw new RunvaultError("invalid_argument", `the profile ${profile.name} has no paths to check`, {
      place: { file: profile.file },
      hint: "What comes over RPC alone cannot be checked yet: archive a run with --dry-run.",
    });
  }
  await using session = new HttpSession(gateway);
  const asker = new Asker(session, rest.base, signal);
  const documents = new DocumentChecks(rest.documents, asker);
  await documents.lists(wanted);
  const run = wanted ?? chosen(documents);
  const findings: Finding[] = [];
  const tables: TableCheck[] = [];
  if (wanted !== undefined) findings.push(...documents.tellUnlisted(wanted));
  const described = tableNames.filter((name) => rest.tables[name] !== undefined);
  findings.push(...notOverRest(profile));
  if (run === undefined) findings.push(noRun(documents));
  else {
    await documents.others(run);
    const counts = await documents.facts(run, described);
    for (const name of described) {
      const table = tableNamed(name);
      const map = profile.maps[name] ?? ownMap(table);
      tables.push(
        await checkTable({
          probe: {
            table,
            map,
            run,
            route: rest.tables[name]!,
            asker: asker.ofTable(requestsOfTable),
            key: `tables.${name}`,
            findings: [],
            heeds: [],
            seen: new Map(),
            strangers: new Map(),
          },
          others: documents.runs,
          facts: rest.documents.facts,
          counted: counts.get(name),
        }),
      );
    }
  }
  return {
    profile: profile.name,
    file: profile.file,
    gateway: session.address.label,
    run: run ?? null,
    documents: documents.checks,
    tables,
    none: profile.none,
    notDescribed: tableNames.filter(
      (name) => !profile.described.includes(name) && !profile.none.includes(name),
    ),
    findings,
    requests: asker.requests + tables.reduce((sum, { requests }) => sum + requests, 0),
  };
}

/** Tables that come another way than over REST: nothing is known of them, and that is no success. */
function notOverRest({ described, rest }: Profile): Finding[] {
  return described
    .filter((name) => rest?.tables[name] === undefined)
    .map((name) => ({
      kind: "not_checked",
      key: `tables.${name}`,
      message: `${name} does not come over REST, and is not checked`,
      hint: "What comes over RPC cannot be checked yet: archive a run with --dry-run, and then for real.",
    }));
}

/** The first finished run; where none is known to be, the first that is known not to go on, then any. */
function chosen({ runs }: DocumentChecks): RunRef | undefined {
  const run =
    runs.find(({ status }) => status === "FINISHED") ??
    runs.find(({ status }) => status !== "RUNNING") ??
    runs[0];
  return run === undefined ? undefined : { instanceId: run.instanceId, runId: run.runId };
}

function noRun({ listed }: DocumentChecks): Finding {
  return {
    kind: "not_checked",
    key: "documents",
    message: "no run is known, so that no table could be checked",
    hint: listed
      ? "Name a run as INSTANCE/RUN, or list runs under `documents.given`."
      : "Correct what is said of the lists, or name a run as INSTANCE/RUN.",
  };
}

/** The map of rows that are canonical as they come. */
function ownMap({ columns }: Table): RowMap {
  const own = columns.map(({ name }): [string, ColumnSource] => [name, { kind: "field", path: [name] }]);
  return { numbers: "text", fields: "keep", ties: "bytes", columns: Object.fromEntries(own), dropped: [] };
}
