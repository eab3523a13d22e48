import fastify, { type FastifyInstance } from "fastify";
import { Counter, Gauge, Registry } from "prom-client";
import { RunvaultError } from "../../model/error.ts";
import { addFigures, type MeasuredJob, setNextStart } from "../tell/metrics.ts";
import type { ScheduleEvent, ScheduleStanding } from "./scheduler.ts";

/** A scheduler's HTTP endpoints: `/health`, and `/metrics` with the metrics of each job's last execution. */
export interface ScheduleServer extends AsyncDisposable {
  readonly url: string;
  /** Counts events. */
  hear(event: ScheduleEvent): void;
}

export interface ScheduleServerOptions {
  readonly host: string;
  readonly port: number;
  readonly standing: () => ScheduleStanding;
  /** The metrics of the scheduled jobs. */
  readonly measured: () => Iterable<MeasuredJob>;
}

/** Listens. Throws `invalid_argument` if the address is not available. */
export async function openScheduleServer({
  host,
  port,
  standing,
  measured,
}: ScheduleServerOptions): Promise<ScheduleServer> {
  const registry = new Registry();
  const registers = [registry];
  const next = new Map<string, string>();
  const ended = new Counter({
    name: "runvault_schedule_executions_total",
    help: "Executions that ended, by exit status, or the signal that ended them.",
    labelNames: ["job", "status"],
    registers,
  });
  const skipped = new Counter({
    name: "runvault_schedule_skipped_total",
    help: "Starts without an execution: one was running, nobody could start it in time, or the file had errors.",
    labelNames: ["job", "why"],
    registers,
  });
  const gauge = (name: string, help: string, value: () => number) => {
    const made: Gauge = new Gauge({ name, help, registers, collect: () => made.set(value()) });
  };
  gauge("runvault_schedule_running", "Running executions.", () => standing().running.length);
  gauge("runvault_schedule_bad_files", "Job files that cannot be run.", () => standing().bad.length);

  const app: FastifyInstance = fastify({ logger: false, bodyLimit: 1024 });
  app.get("/health", async (_request, reply) => {
    const { good, bad, running } = standing();
    // file names belong only in the log
    const body = { status: bad.length === 0 ? "ok" : "degraded", files: good, badFiles: bad.length, running };
    return await reply.code(good === 0 ? 503 : 200).send(body);
  });
  app.get("/metrics", async (_request, reply) => {
    const jobs = new Registry();
    for (const figures of measured()) addFigures(jobs, figures);
    for (const [job, at] of next) setNextStart(jobs, job, at);
    const texts = [await jobs.metrics(), await registry.metrics()];
    return await reply.type(registry.contentType).send(texts.filter((text) => text.trim() !== "").join("\n"));
  });
  let url: string;
  try {
    url = await app.listen({ host, port });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunvaultError("invalid_argument", `it cannot listen on ${host}:${port}: ${why}`, {
      cause,
      hint: "Give another --listen.",
    });
  }
  return {
    url,
    hear: (event) => {
      const { kind } = event;
      if (kind === "next") next.set(event.job, event.at.toISOString());
      else if (kind === "ended") ended.inc({ job: event.job, status: event.signal ?? String(event.status) });
      else if (kind === "skipped") skipped.inc({ job: event.job, why: event.why });
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}
