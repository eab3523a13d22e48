/** The transports: REST with JSON and NDJSON, and RPC. */
export const transports = ["rest", "rpc"] as const;
export type Transport = (typeof transports)[number];
