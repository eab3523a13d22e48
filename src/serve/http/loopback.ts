import { BlockList, isIP } from "node:net";

/** Whether only this machine can reach a listening address. */
export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const family = isIP(host);
  if (family === 0) return false;
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8, "ipv4");
  loopback.addAddress("::1", "ipv6");
  return loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}
