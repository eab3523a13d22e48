import type { ErrorPlace } from "../../../model/error.ts";
import type { FilterName } from "../../../model/profile/table.ts";
import type { RestDocuments, RestRequest, RestRoute, RpcRequest } from "../profile.ts";
import { type JsonNode, readJsonText } from "./json-node.ts";

/** A request as a check speaks of it: what goes over RPC has the names of its fields, with dots, for parameters. */
export type CheckedRequest = RestRequest & OverRpc;
export type CheckedRoute = RestRoute & OverRpc;

export type CheckedDocuments = {
  readonly [K in keyof RestDocuments]: RestDocuments[K] extends RestRequest | undefined
    ? (RestDocuments[K] & OverRpc) | undefined
    : RestDocuments[K];
};

interface OverRpc {
  /** The call that it stands for; undefined over REST. */
  readonly rpc?: RpcRequest;
}

/** What a request is to be sent with; what the profile has no parameter for is not sent. */
export interface AskedFor {
  readonly instance?: string;
  readonly run?: string;
  /** As they are sent, in the gateway's own unit. */
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
  readonly filters?: Readonly<Partial<Record<FilterName, string>>>;
  /** Further parameters: those of pages. */
  readonly more?: readonly (readonly [name: string, value: string])[];
}

/** An answer of whatever status, read as far as is worth looking at. */
export interface Told {
  /** Method and target as people are shown them. */
  readonly request: string;
  readonly status: number;
  readonly mediaType: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Whether more came than was read. */
  readonly cut: boolean;
  /** How an RPC was refused: its code and the gateway's words. */
  readonly refusal?: string;
}

/** Thrown where a table's requests are used up. */
export class NoMoreRequests extends Error {}

/** Asks a gateway for what its profile describes, and counts. */
export interface Asker {
  /** Requests sent. */
  readonly requests: number;
  /** What to do where the gateway answers 401. */
  readonly unauthenticatedHint: string;
  /** The same with a number of requests of its own. */
  ofTable(most: number): Asker;
  /** The answer to a request of the profile. Throws what keeps from having one, and `NoMoreRequests`. */
  ask(request: CheckedRequest, asked: AskedFor, accept: string, place: ErrorPlace): Promise<Told>;
  /** The answer to an address that the gateway itself gave. Throws `refused` where it is of another origin. */
  follow(address: string, from: Told, accept: string, place: ErrorPlace): Promise<Told>;
}

/** An answer's JSON; undefined where it is none. */
export function jsonOf({ text, cut }: Told): JsonNode | undefined {
  return readJsonText(text, cut);
}

/** How an answer is not what was asked for, for people. */
export function refusalText({ refusal, status }: Told): string {
  return refusal ?? `status ${status}`;
}
