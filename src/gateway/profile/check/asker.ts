import type { ErrorPlace } from "../../../model/error.ts";
import type { FilterName } from "../../../model/profile/table.ts";
import type { RestDocuments, RestRequest, RestRoute, RpcRequest } from "../profile.ts";
import { type JsonNode, readJsonText } from "./json-node.ts";

/** A request in the form used by checks. Over RPC, parameters are field paths such as `scope.run`. */
export type CheckedRequest = RestRequest & OverRpc;
export type CheckedRoute = RestRoute & OverRpc;

export type CheckedDocuments = {
  readonly [K in keyof RestDocuments]: RestDocuments[K] extends RestRequest | undefined
    ? (RestDocuments[K] & OverRpc) | undefined
    : RestDocuments[K];
};

interface OverRpc {
  /** The RPC call; undefined over REST. */
  readonly rpc?: RpcRequest;
}

/** Values for a request; those without a parameter in the profile are not sent. */
export interface AskedFor {
  readonly instance?: string;
  readonly run?: string;
  /** As sent, in the gateway's unit. */
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
  readonly filters?: Readonly<Partial<Record<FilterName, string>>>;
  /** Further parameters, for pages. */
  readonly more?: readonly (readonly [name: string, value: string])[];
}

/** An answer of any status, read as far as useful. */
export interface Told {
  /** Method and target, as shown to people. */
  readonly request: string;
  readonly status: number;
  readonly mediaType: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Whether the answer was longer than what was read. */
  readonly cut: boolean;
  /** How an RPC was refused: its code and the gateway's words. */
  readonly refusal?: string;
}

/** Thrown once a table has used all its requests. */
export class NoMoreRequests extends Error {}

/** Sends a profile's requests to its gateway, and counts them. */
export interface Asker {
  /** Requests sent. */
  readonly requests: number;
  /** What to do if the gateway answers 401. */
  readonly unauthenticatedHint: string;
  /** The same with a separate limit. */
  ofTable(most: number): Asker;
  /** The answer to a request of the profile. Throws if there is none, or with `NoMoreRequests`. */
  ask(request: CheckedRequest, asked: AskedFor, accept: string, place: ErrorPlace): Promise<Told>;
  /** The answer from an address that the gateway returned. Throws `refused` for another origin. */
  follow(address: string, from: Told, accept: string, place: ErrorPlace): Promise<Told>;
}

/** An answer's JSON; undefined if it is not JSON. */
export function jsonOf({ text, cut }: Told): JsonNode | undefined {
  return readJsonText(text, cut);
}

/** Why an answer was refused, for people. */
export function refusalText({ refusal, status }: Told): string {
  return refusal ?? `status ${status}`;
}
