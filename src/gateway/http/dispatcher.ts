import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import type { GatewayAddress } from "../address.ts";
import type { CheckedOptions } from "../options.ts";

/**
 * The connections to a gateway. Proxies come from http_proxy, https_proxy and no_proxy; a loopback address is reached
 * directly unless an option says otherwise. Only HTTP/1.1: truncation is detected by its framing, which is tested.
 */
export function openDispatcher(address: GatewayAddress, options: CheckedOptions): Dispatcher {
  const tls = {
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.cert === undefined ? {} : { cert: options.cert }),
    ...(options.key === undefined ? {} : { key: options.key }),
  };
  const shared = {
    allowH2: false,
    connect: { ...tls, timeout: options.connectTimeoutMs },
    // callers have their own clock, which no 1xx resets
    headersTimeout: 0,
    bodyTimeout: options.bodyIdleTimeoutMs,
  };
  if (address.loopback && !options.proxyLoopback) return new Agent(shared);
  return new EnvHttpProxyAgent({ ...shared, requestTls: { ...tls, timeout: options.connectTimeoutMs } });
}
