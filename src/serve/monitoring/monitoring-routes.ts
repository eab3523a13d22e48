import type { FastifyContextConfig, FastifyInstance } from "fastify";
import { Gauge, Registry } from "prom-client";
import type { ControlPlane, Gauge as Figure } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { queryOf, type RouteAnswer } from "../route-doc.ts";
import { prometheusType, type ServiceMetrics } from "./service-metrics.ts";

export interface MonitoringRoutesOptions {
  readonly control: ControlPlane | undefined;
  readonly listening: () => Listening;
  readonly metrics: ServiceMetrics;
}

/** A target to scrape, relative to this server. */
export interface MetricsTarget {
  readonly path: string;
  /** Empty for the service itself. */
  readonly instanceId: string;
  /** 0 for the service itself. */
  readonly port: number;
}

/** The service's own metrics first, then the instances' by id. */
export async function metricsTargets(control: ControlPlane | undefined): Promise<MetricsTarget[]> {
  const instances = (await control?.instances()) ?? [];
  return [
    { path: "/metrics", instanceId: "", port: 0 },
    ...instances
      .filter(({ metricsPort }) => metricsPort > 0)
      .map(({ instanceId, metricsPort: port }) => ({ path: `/metrics/instances/${port}`, instanceId, port })),
  ];
}

const prometheus = { type: "text/plain" };
const doc = (summary: string, answer: RouteAnswer): FastifyContextConfig => ({
  doc: { summary, query: [], answer },
});

/** Prometheus text of the service and each instance, and HTTP service discovery for them. */
export function monitoringRoutes(
  app: FastifyInstance,
  { control, listening, metrics }: MonitoringRoutesOptions,
): void {
  app.get(
    "/discovery",
    {
      config: doc("Metrics addresses, for Prometheus HTTP service discovery.", {
        type: "application/json",
        schema: { type: "array", items: { type: "object", required: ["targets", "labels"] } },
      }),
    },
    async (request, reply) => {
      queryOf(request);
      const address = reachedBy(request.host, listening());
      const groups = (await metricsTargets(control)).map(({ path, instanceId }) => ({
        targets: [address],
        labels: {
          __scheme__: request.protocol,
          __metrics_path__: path,
          ...(instanceId === "" ? {} : { instance_id: instanceId }),
        },
      }));
      return reply.type("application/json; charset=utf-8").send(JSON.stringify(groups));
    },
  );

  app.get("/metrics", { config: doc("Metrics of the service.", prometheus) }, async (request, reply) => {
    queryOf(request);
    return reply
      .header("content-type", prometheusType)
      .send((await metrics.text()) + (await keptText(control)));
  });

  app.get<{ Params: { port: string } }>(
    "/metrics/instances/:port",
    { config: doc("Metrics of an instance.", prometheus) },
    async (request, reply) => {
      queryOf(request);
      const { port } = request.params;
      if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) {
        throw new RunvaultError("invalid_argument", `not a port from 1 to 65535: ${JSON.stringify(port)}`);
      }
      const instance = (await control?.instances())?.find(({ metricsPort }) => metricsPort === Number(port));
      if (control === undefined || instance === undefined) {
        throw new RunvaultError("resource_not_found", `no instance has its metrics on port ${port}`, {
          hint: "GET /discovery lists the ports.",
        });
      }
      return reply
        .header("content-type", prometheusType)
        .send(await gaugesText(await control.gauges(instance.instanceId)));
    },
  );
}

/** Metrics about an archive; empty if it cannot be read, because the process's metrics are still useful then. */
async function keptText(control: ControlPlane | undefined): Promise<string> {
  if (control?.keptRuns === undefined || !(await control.daemon()).reachable) return "";
  const { states, runs } = await control.keptRuns();
  const byState = Map.groupBy(runs, ({ state }) => state);
  const newest = runs.reduce((last, { committed }) => (committed > last ? committed : last), 0n);
  return await gaugesText([
    {
      name: "runvault_archive_runs",
      help: "Archived runs by state.",
      samples: states.map((state) => ({ labels: { state }, value: byState.get(state)?.length ?? 0 })),
    },
    {
      name: "runvault_archive_newest_commit_timestamp_seconds",
      help: "Time of the last commit of a run, in UNIX seconds; 0 if there is none.",
      samples: [{ labels: {}, value: Number(newest) / 1e9 }],
    },
  ]);
}

async function gaugesText(figures: readonly Figure[]): Promise<string> {
  const registry = new Registry();
  for (const { name, help, samples } of figures) {
    const labelNames = [...new Set(samples.flatMap(({ labels }) => Object.keys(labels)))];
    const gauge = new Gauge({ name, help, labelNames, registers: [registry] });
    for (const { labels, value } of samples) gauge.set({ ...labels }, value);
  }
  return registry.metrics();
}

/** Where a server listens. */
export interface Listening {
  readonly host: string;
  readonly port: number;
  /** The default port of a Host: 443 with TLS, else 80. */
  readonly usualPort: number;
}

/**
 * The host and port by which the client reached us, and can reach the targets too; without a Host header, our own.
 */
export function reachedBy(host: string, listening: Listening): string {
  const [, name, port] = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/.exec(host) ?? [];
  if (name === undefined || Number(port ?? 0) > 65_535) {
    const own = listening.host;
    return `${own.includes(":") ? `[${own}]` : own}:${listening.port}`;
  }
  return `${name}:${port ?? listening.usualPort}`;
}
