import type { ColumnSource, RowMap } from "../../../model/profile/row-map.ts";
import { type Table, type TableName, tableNamed, tableNames } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { HttpSession } from "../../http/http-session.ts";
import type { GatewayOptions } from "../../options.ts";
import type { FactFields, Profile, RpcRoute } from "../profile.ts";
import type { Asker, CheckedRoute } from "./asker.ts";
import { DocumentChecks, type SeenRun } from "./check-documents.ts";
import { checkTable, requestsOfTable } from "./check-table.ts";
import type { Finding, ProfileCheck, TableCheck } from "./profile-check.ts";
import { RestAsker } from "./rest-asker.ts";
import { RpcAsker } from "./rpc-asker.ts";
import { documentsOverRpc, routeOverRpc } from "./rpc-requests.ts";

/** What to check, and with what. */
export interface CheckRequest {
  /** How to reach the gateway, with the values of the profile's headers and keys. */
  readonly gateway: GatewayOptions;
  readonly profile: Profile;
  /** Default: the first finished run that the documents name. */
  readonly run?: RunRef | undefined;
  readonly signal: AbortSignal;
}

/** A profile's part for one transport, and the findings about it. */
interface Side {
  readonly asker: Asker;
  readonly documents: DocumentChecks;
  readonly facts: FactFields | undefined;
  readonly routes: Readonly<Partial<Record<TableName, CheckedRoute>>>;
  readonly maps: Readonly<Partial<Record<TableName, RowMap>>>;
}

/**
 * Checks a profile against its gateway with a few small requests: what each path or method answers, where each column
 * comes from, whether the gateway obeys requests, and which proof each table can reach. Whatever the gateway gets wrong
 * is a finding.
 */
export async function checkProfile({
  gateway,
  profile,
  run: wanted,
  signal,
}: CheckRequest): Promise<ProfileCheck> {
  await using session = new HttpSession(gateway);
  const sides = sidesOf(profile, session, signal);
  const findings: Finding[] = [];
  for (const { documents } of sides) {
    await documents.lists(wanted);
    if (wanted !== undefined) findings.push(...documents.tellUnlisted(wanted));
  }
  const runs = sides.flatMap(({ documents }) => documents.runs);
  const run = wanted ?? chosen(runs);
  const tables: TableCheck[] = [];
  if (run === undefined)
    findings.push(
      noRun(
        sides.every(({ documents }) => documents.listed),
        profile,
      ),
    );
  else {
    for (const side of sides) tables.push(...(await checkSide(side, run, runs)));
  }
  return {
    profile: profile.name,
    file: profile.file,
    gateway: session.address.label,
    run: run ?? null,
    documents: sides.flatMap(({ documents }) => documents.checks),
    tables,
    none: profile.none,
    notDescribed: tableNames.filter(
      (name) => !profile.described.includes(name) && !profile.none.includes(name),
    ),
    findings,
    requests: [...sides.map(({ asker }) => asker), ...tables].reduce(
      (sum, { requests }) => sum + requests,
      0,
    ),
  };
}

function sidesOf({ rest, rpc, maps }: Profile, session: HttpSession, signal: AbortSignal): Side[] {
  const sides: Side[] = [];
  if (rest !== undefined) {
    const asker = new RestAsker(session, rest.base, signal);
    const { documents, tables: routes } = rest;
    sides.push({
      asker,
      documents: new DocumentChecks(documents, asker),
      facts: documents.facts,
      routes,
      maps,
    });
  }
  if (rpc !== undefined) {
    const asker = new RpcAsker(session, rpc, signal);
    const documents = documentsOverRpc(rpc.documents);
    const routes = Object.entries(rpc.tables) as [TableName, RpcRoute][];
    sides.push({
      asker,
      documents: new DocumentChecks(documents, asker, "rpc.documents"),
      facts: documents.facts,
      routes: Object.fromEntries(routes.map(([name, route]) => [name, routeOverRpc(route)])),
      maps: Object.fromEntries(routes.flatMap(([name, { map }]) => (map === undefined ? [] : [[name, map]]))),
    });
  }
  return sides;
}

/** Checks the documents of a run, and its tables, over one transport. */
async function checkSide(
  { asker, documents, facts, routes, maps }: Side,
  run: RunRef,
  others: readonly RunRef[],
): Promise<TableCheck[]> {
  const described = tableNames.filter((name) => routes[name] !== undefined);
  await documents.others(run);
  const counts = await documents.facts(run, described);
  const checks: TableCheck[] = [];
  for (const name of described) {
    const table = tableNamed(name);
    checks.push(
      await checkTable({
        probe: {
          table,
          map: maps[name] ?? ownMap(table),
          run,
          route: routes[name]!,
          asker: asker.ofTable(requestsOfTable),
          key: `tables.${name}`,
          findings: [],
          heeds: [],
          seen: new Map(),
          strangers: new Map(),
        },
        others,
        facts,
        counted: counts.get(name),
      }),
    );
  }
  return checks;
}

/** The first finished run; failing that, the first that is not growing; failing that, any. */
function chosen(runs: readonly SeenRun[]): RunRef | undefined {
  const run =
    runs.find(({ status }) => status === "FINISHED") ??
    runs.find(({ status }) => status !== "RUNNING") ??
    runs[0];
  return run === undefined ? undefined : { instanceId: run.instanceId, runId: run.runId };
}

function noRun(listed: boolean, { rest }: Profile): Finding {
  const key = rest === undefined ? "rpc.documents" : "documents";
  return {
    kind: "not_checked",
    key,
    message: "no run was found, so no table was checked",
    hint: listed
      ? `Name a run as INSTANCE/RUN, or list runs under \`${key}.given\`.`
      : "Correct the entries for the lists, or name a run as INSTANCE/RUN.",
  };
}

/** The map of rows that are already canonical. */
function ownMap({ columns }: Table): RowMap {
  const own = columns.map(({ name }): [string, ColumnSource] => [name, { kind: "field", path: [name] }]);
  return { numbers: "text", fields: "keep", ties: "bytes", columns: Object.fromEntries(own), dropped: [] };
}
