/** The part of a profile about RPC. */
export interface RpcProfile {
  readonly protocol: "connect" | "grpc";
  /** The descriptor set, absolute. */
  readonly descriptors: string;
}
