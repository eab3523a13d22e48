import { RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/profile/table.ts";
import type { GatewayLists, GatewaySource } from "./gateway.ts";
import { withGiven } from "./given-instances.ts";
import type { HttpSession } from "./http/http-session.ts";
import type { Profile, RestProfile, RpcProfile } from "./profile/profile.ts";
import { profileRestSource } from "./rest/profile-rest-source.ts";
import { profileRpcSource } from "./rpc/profile-rpc-source.ts";
import type { TransportChoice } from "./transport-choice.ts";

/**
 * The source that a profile describes. If it describes both transports and neither is requested alone, each table comes
 * over REST if it has a path. Lists, facts and documents come over RPC if they have a method, and over REST if RPC does
 * not answer. Throws `invalid_argument` for a transport that it does not describe.
 */
export function describedSource(
  session: HttpSession,
  profile: Profile,
  transport: TransportChoice,
): GatewaySource {
  const { rest, rpc } = profile;
  if (transport === "auto" && rest !== undefined && rpc !== undefined) {
    return bothSources(session, profile, rest, rpc);
  }
  if (transport !== "rpc" && rest !== undefined) {
    return { ...profileRestSource(session, profile, rest), described: describedBy(profile, rest) };
  }
  if (transport !== "rest" && rpc !== undefined) {
    return { ...profileRpcSource(session, profile, rpc), described: describedBy(profile, rpc) };
  }
  throw new RunvaultError(
    "invalid_argument",
    `the profile ${profile.name} describes no ${transport === "rest" ? "REST" : "RPC"}`,
    { place: { file: profile.file }, hint: "Leave --transport out, or describe it in the profile." },
  );
}

/** Leaves out tables that the profile has only over another transport. */
function describedBy(
  { described, none, name }: Profile,
  { tables }: Pick<RestProfile, "tables"> | Pick<RpcProfile, "tables">,
) {
  return { tables: described.filter((table) => tables[table] !== undefined), none, by: name };
}

function bothSources(
  session: HttpSession,
  profile: Profile,
  restPart: RestProfile,
  rpcPart: RpcProfile,
): GatewaySource {
  const lists: GatewayLists = {
    async instances(signal) {
      const isOverRpc = rpcPart.documents.instances !== undefined;
      const [first, other] = isOverRpc ? [rpc, restPart] : [rest, rpcPart];
      return withGiven(await first.instances(signal), other.documents.given);
    },
    runs: async (instanceId, signal) => (await rpc.runs(instanceId, signal)) ?? rest.runs(instanceId, signal),
  };
  const rest = profileRestSource(session, profile, restPart, () => lists);
  const rpc = profileRpcSource(session, profile, rpcPart, () => lists);
  const of = (table: TableName) => (restPart.tables[table] === undefined ? rpc : rest);
  const haveBothFacts = rpcPart.documents.facts !== undefined && restPart.documents.facts !== undefined;
  return {
    ...lists,
    label: rest.label,
    now: () => rest.now?.(),
    stats: rest.stats,
    retriesOf: (run) => rest.retriesOf(run),
    reconnect: () => rest.reconnect?.(),
    isNoContentUnclear: (run, table) => session.noContent.isUnclear(run, table),
    described: { tables: profile.described, none: profile.none, by: profile.name },
    traits: (table) => of(table).traits?.(table),
    listings: async (signal) => (await Promise.all([rpc, rest].map((one) => one.listings!(signal)))).flat(),
    facts: async (run, bounds, signal, asked) =>
      (await rpc.facts(run, bounds, signal, asked)) ?? rest.facts(run, bounds, signal, asked),
    otherFacts: async (run, bounds, signal, asked) =>
      haveBothFacts ? await rest.facts(run, bounds, signal, asked) : null,
    document: async (run, kind, signal) =>
      (await rpc.document(run, kind, signal)) ?? (await rest.document(run, kind, signal)),
    rows: (request) => of(request.table).rows(request),
  };
}
