import type { DescMethodUnary } from "@bufbuild/protobuf";
import type { RequestContext } from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";

/** One call: the method and the bytes of its request. */
export interface RpcCall {
  readonly method: DescMethodUnary;
  readonly request: Uint8Array;
  /** Whether the request carries a page token, which may be refused. */
  readonly withToken: boolean;
  /** An answer longer than this is `limit_exceeded`. */
  readonly mostBytes: number;
  /** The minimum rate, if the answer is a page of rows. */
  readonly rate?: RowRate;
}

/**
 * One attempt at a call, below a path, without retries: the bytes of its answer's message. For the HTTP status `empty`
 * there are none, as for an empty message.
 */
export type RpcExchange = (
  prefix: string,
  call: RpcCall,
  context: RequestContext,
  empty?: number,
) => Promise<Buffer>;

/** Name of a method in addresses. */
export function methodPath({ parent, name }: DescMethodUnary): string {
  return `/${parent.typeName}/${name}`;
}
