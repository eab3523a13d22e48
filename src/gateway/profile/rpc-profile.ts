import { z } from "zod";

/** The part of a profile about RPC. */
export interface RpcProfile {
  readonly protocol: "connect" | "grpc";
  /** The descriptor set, absolute. */
  readonly descriptors: string;
}

export const rpcSchema = z
  .strictObject(
    {
      protocol: z
        .enum(["connect", "grpc"], { error: "must be connect or grpc" })
        .meta({ description: "protocol of the gateway's services" }),
      descriptors: z
        .string({ error: "must be the path of a file" })
        .min(1, "must not be empty")
        .meta({
          description: "descriptor set of the services, from the folder of this profile on",
          examples: ["acme.binpb"],
        }),
    },
    { error: "must be a map of keys and values" },
  )
  .meta({
    description: "how the gateway is spoken to over RPC; without it not at all",
    examples: [{ protocol: "grpc", descriptors: "acme.binpb" }],
  });
export type RpcFile = z.output<typeof rpcSchema>;

/** What `rpc` of a profile comes to; `resolve` makes paths absolute that begin at the profile's folder. */
export function compileRpc(rpc: RpcFile, resolve: (path: string) => string): RpcProfile {
  return { protocol: rpc.protocol, descriptors: resolve(rpc.descriptors) };
}

/** `rpc` as a profile would have it. */
export function rpcDocument(rpc: RpcProfile): unknown {
  return { protocol: rpc.protocol, descriptors: rpc.descriptors };
}
