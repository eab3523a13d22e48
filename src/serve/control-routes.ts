import type { FastifyInstance } from "fastify";
import {
  GetHealthResponseSchema,
  RunDoctorResponseSchema,
} from "../gen/example/gateway/v1/gateway_service_pb.ts";
import {
  InstanceHealthSchema,
  InstanceSchema,
  ListInstancesResponseSchema,
} from "../gen/example/gateway/v1/instance_service_pb.ts";
import {
  GetStatusResponseSchema,
  ListResourcesResponseSchema,
  QueryResponseSchema,
} from "../gen/example/gateway/v1/runtime_service_pb.ts";
import type { ControlPlane } from "../model/control.ts";
import { healthOf } from "../model/instance-state.ts";
import type { HistorySource } from "../model/source.ts";
import { doctorReport, health, instanceMessage, inventory } from "./control-documents.ts";
import { answerJson } from "./json-answer.ts";
import { checkedQuery, type RawQuery, required } from "./row-query.ts";

export interface ControlRoutesOptions {
  /** Where it is missing only /health answers: there is nothing to control. */
  readonly control: ControlPlane | undefined;
  readonly source: HistorySource;
}

/** /health, and where there is a control plane /doctor, the inventory, and what instances report of themselves. */
export function controlRoutes(app: FastifyInstance, { control, source }: ControlRoutesOptions): void {
  // asked by what watches over processes, under whatever name it has for them
  app.get("/health", { config: { answersAllHosts: true } }, (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answerJson(reply, GetHealthResponseSchema, health());
  });
  if (control === undefined) return;

  app.get("/doctor", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    const report = await doctorReport(control, source);
    return answerJson(reply.code(report.ok ? 200 : 502), RunDoctorResponseSchema, report);
  });

  app.get("/instances", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answerJson(reply, ListInstancesResponseSchema, await inventory(control));
  });

  app.get<{ Params: { id: string } }>("/instances/:id", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answerJson(reply, InstanceSchema, instanceMessage(await control.instance(request.params.id)));
  });

  app.get<{ Params: { id: string } }>("/instances/:id/health", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    const instance = await control.instance(request.params.id);
    const { classification, reasons } = healthOf(instance);
    return answerJson(reply, InstanceHealthSchema, {
      instanceId: instance.instanceId,
      classification,
      reasons: [...reasons],
    });
  });

  app.get("/runtime/status", async (request, reply) => {
    const query = checkedQuery(request.query as RawQuery, ["instance"]);
    return answerJson(reply, GetStatusResponseSchema, await control.status(required(query, "instance")));
  });

  app.get("/runtime/resources", async (request, reply) => {
    const query = checkedQuery(request.query as RawQuery, ["instance"]);
    return answerJson(reply, ListResourcesResponseSchema, await control.catalog(required(query, "instance")));
  });

  app.get<{ Params: { "*": string } }>("/runtime/query/*", async (request, reply) => {
    const query = checkedQuery(request.query as RawQuery, ["instance"]);
    const instanceId = required(query, "instance");
    return answerJson(reply, QueryResponseSchema, await control.query(instanceId, request.params["*"]));
  });
}
