import { builtInRpcContract, type RpcRules } from "../contract.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RpcProfile } from "../profile/profile.ts";
import { connectExchange } from "./connect-exchange.ts";
import { grpcExchange } from "./grpc-exchange.ts";
import { RpcClient } from "./rpc-client.ts";

/** The calls of a gateway as a profile describes it. */
export interface ProfileRpc {
  readonly client: RpcClient;
  readonly rules: RpcRules;
  /** Path that methods are below. */
  readonly prefix: string;
}

export function profileRpcClient(session: HttpSession, rpc: RpcProfile): ProfileRpc {
  const rules: RpcRules = {
    pageBytes: builtInRpcContract.pageBytes,
    historyCodes: {},
    codes: { ...builtInRpcContract.codes, ...rpc.codes },
    tokenRefusals: builtInRpcContract.tokenRefusals,
  };
  const exchange = rpc.protocol === "grpc" ? grpcExchange(session, rules) : connectExchange(session, rules);
  const prefix = rpc.base ?? session.address.basePath;
  return { client: new RpcClient(session, exchange, prefix), rules, prefix };
}
