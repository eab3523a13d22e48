import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import type { GatewayAddress } from "../address.ts";
import type { CheckedOptions } from "../options.ts";

/**
 * The connections to a gateway. Proxies come from http_proxy, https_proxy and no_proxy; a loopback address is reached
 * directly unless asked otherwise. HTTP/1.1 only: its framing is what the detection of cuts is tested on.
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
    // whoever asks has a clock of their own, which no 1xx sets back
    headersTimeout: 0,
    bodyTimeout: options.bodyIdleTimeoutMs,
  };
  if (address.loopback && !options.proxyLoopback) return new Agent(shared);
  return new EnvHttpProxyAgent({ ...shared, requestTls: { ...tls, timeout: options.connectTimeoutMs } });
}
