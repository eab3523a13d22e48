import { RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/profile/table.ts";
import type { GatewaySource } from "./gateway.ts";
import type { HttpSession } from "./http/http-session.ts";
import type { Profile } from "./profile/profile.ts";
import { profileRestSource } from "./rest/profile-rest-source.ts";
import { profileRpcSource } from "./rpc/profile-rpc-source.ts";
import type { TransportChoice } from "./transport-choice.ts";

/**
 * The source that a profile describes. Where it describes both transports, and neither is asked for alone, each table
 * comes over REST where it has a path; lists, facts and documents over RPC where they have a method. Throws
 * `invalid_argument` for a transport that it does not describe.
 */
export function describedSource(
  session: HttpSession,
  profile: Profile,
  transport: TransportChoice,
): GatewaySource {
  const rest =
    profile.rest === undefined || transport === "rpc"
      ? undefined
      : profileRestSource(session, profile, profile.rest);
  const rpc =
    profile.rpc === undefined || transport === "rest"
      ? undefined
      : profileRpcSource(session, profile, profile.rpc);
  if (rest !== undefined && rpc !== undefined) return bothSources(profile, rest, rpc);
  const only = rest ?? rpc;
  if (only !== undefined) return only;
  throw new RunvaultError(
    "invalid_argument",
    `the profile ${profile.name} describes no ${transport === "rest" ? "REST" : "RPC"}`,
    { place: { file: profile.file }, hint: "Leave --transport out, or describe it in the profile." },
  );
}

function bothSources(profile: Profile, rest: GatewaySource, rpc: GatewaySource): GatewaySource {
  const hasRoute = (table: TableName) => profile.rest?.tables[table] !== undefined;
  const of = (table: TableName) => (hasRoute(table) ? rest : rpc);
  const hasFacts = profile.rpc?.documents.facts !== undefined;
  const facts = hasFacts ? rpc : rest;
  const otherFacts = hasFacts && profile.rest?.documents.facts !== undefined ? rest : undefined;
  return {
    label: rest.label,
    now: () => rest.now?.(),
    stats: rest.stats,
    retriesOf: (run) => rest.retriesOf(run),
    ...(rest.described === undefined ? {} : { described: rest.described }),
    traits: (table) => of(table).traits?.(table),
    listings: async (signal) => (await Promise.all([rpc, rest].map((one) => one.listings!(signal)))).flat(),
    instances: (signal) => (profile.rpc?.documents.instances === undefined ? rest : rpc).instances(signal),
    runs: async (instanceId, signal) => (await rpc.runs(instanceId, signal)) ?? rest.runs(instanceId, signal),
    facts: (run, bounds, signal, asked) => facts.facts(run, bounds, signal, asked),
    otherFacts: async (run, bounds, signal, asked) =>
      otherFacts === undefined ? null : await otherFacts.facts(run, bounds, signal, asked),
    document: async (run, kind, signal) =>
      (await rpc.document(run, kind, signal)) ?? (await rest.document(run, kind, signal)),
    rows: (request) => of(request.table).rows(request),
  };
}
