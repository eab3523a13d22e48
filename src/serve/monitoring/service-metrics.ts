import type { FastifyInstance } from "fastify";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** The service's own metrics, as Prometheus text. Each server has its own registry. */
export interface ServiceMetrics {
  readonly connections: Gauge;
  readonly subscriptions: Gauge;
  /** Connections closed because there were too many. */
  readonly refused: Counter;
  /** Live values that slow clients missed. */
  readonly dropped: Counter;
  text(): Promise<string>;
}

// per process, not per server: some of them observe the runtime for its lifetime
let processRegistry: Registry | undefined;

/** Gauges named like totals, which Prometheus takes for counters; each is the sum of another one over its labels. */
const misnamed = ["handles", "requests", "resources"].map((what) => `nodejs_active_${what}_total`);

/** Counts every answer of the server from now on. */
export function serviceMetrics(app: FastifyInstance): ServiceMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "runvault_http_requests_total",
    help: "Answers by method, route and status.",
    labelNames: ["method", "route", "status"],
    registers,
  });
  const seconds = new Histogram({
    name: "runvault_http_request_duration_seconds",
    help: "Time from a request to the end of its answer, by route.",
    labelNames: ["route"],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers,
  });
  app.addHook("onResponse", async (request, reply) => {
    // unknown paths must not become labels: there are too many
    const route = request.is404 ? "" : (request.routeOptions.url ?? "");
    const { method } = request;
    requests.inc({ method: /^[A-Z]{1,16}$/.test(method) ? method : "", route, status: reply.raw.statusCode });
    seconds.observe({ route }, reply.elapsedTime / 1000);
  });
  if (processRegistry === undefined) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
    for (const name of misnamed) processRegistry.removeSingleMetric(name);
  }
  const ofProcess = processRegistry;
  return {
    connections: new Gauge({
      name: "runvault_live_connections",
      help: "Open instance WebSockets.",
      registers,
    }),
    subscriptions: new Gauge({
      name: "runvault_live_subscriptions",
      help: "Subscriptions on open WebSockets.",
      registers,
    }),
    refused: new Counter({
      name: "runvault_connections_refused_total",
      help: "Connections closed because there were too many.",
      registers,
    }),
    dropped: new Counter({
      name: "runvault_live_dropped_total",
      help: "Live messages dropped because the client did not read them.",
      registers,
    }),
    text: () => Registry.merge([ofProcess, registry]).metrics(),
  };
}

/** The media type of Prometheus text. */
export const prometheusType = Registry.PROMETHEUS_CONTENT_TYPE;
