import type { DescMessage } from "@bufbuild/protobuf";
import type { FastifyContextConfig, FastifyInstance } from "fastify";
import {
  GetHealthResponseSchema,
  RunDoctorResponseSchema,
} from "../../gen/example/gateway/v1/gateway_service_pb.ts";
import {
  InstanceHealthSchema,
  InstanceSchema,
  ListInstancesResponseSchema,
} from "../../gen/example/gateway/v1/instance_service_pb.ts";
import {
  GetStatusResponseSchema,
  ListResourcesResponseSchema,
  QueryResponseSchema,
} from "../../gen/example/gateway/v1/runtime_service_pb.ts";
import type { ControlPlane } from "../../model/control.ts";
import { healthOf } from "../../model/instance-state.ts";
import type { HistorySource } from "../../model/source.ts";
import { required } from "../history/row-query.ts";
import { answerJson } from "../http/json-answer.ts";
import { type ParameterName, queryOf } from "../route-doc.ts";
import { doctorReport, health, instanceMessage, inventory } from "./control-documents.ts";

export interface ControlRoutesOptions {
  /** Without it only /health answers: there is nothing to control. */
  readonly control: ControlPlane | undefined;
  readonly source: HistorySource;
}

/** A route that answers with a message. */
const doc = (
  summary: string,
  query: readonly ParameterName[],
  message: DescMessage,
  statuses: readonly number[] = [200],
): FastifyContextConfig => ({ doc: { summary, query, answer: { message, statuses } } });

/** /health and, with a control plane, /doctor, the inventory, and what instances report. */
export function controlRoutes(app: FastifyInstance, { control, source }: ControlRoutesOptions): void {
  // for process supervisors, under the usual names
  app.get(
    "/health",
    {
      config: {
        answersAllHosts: true,
        ...doc(
          "Whether the API process serves requests; it checks nothing else.",
          [],
          GetHealthResponseSchema,
        ),
      },
    },
    (request, reply) => {
      queryOf(request);
      return answerJson(reply, GetHealthResponseSchema, health());
    },
  );
  if (control === undefined) return;

  app.get(
    "/doctor",
    {
      config: doc(
        "Checks of what the service depends on; 502 if one fails.",
        [],
        RunDoctorResponseSchema,
        [200, 502],
      ),
    },
    async (request, reply) => {
      queryOf(request);
      const report = await doctorReport(control, source);
      return answerJson(reply.code(report.ok ? 200 : 502), RunDoctorResponseSchema, report);
    },
  );

  app.get(
    "/instances",
    { config: doc("The instances, and the daemon that runs them.", [], ListInstancesResponseSchema) },
    async (request, reply) => {
      queryOf(request);
      return answerJson(reply, ListInstancesResponseSchema, await inventory(control));
    },
  );

  app.get<{ Params: { id: string } }>(
    "/instances/:id",
    { config: doc("One instance.", [], InstanceSchema) },
    async (request, reply) => {
      queryOf(request);
      return answerJson(reply, InstanceSchema, instanceMessage(await control.instance(request.params.id)));
    },
  );

  app.get<{ Params: { id: string } }>(
    "/instances/:id/health",
    { config: doc("An operator's view of an instance.", [], InstanceHealthSchema) },
    async (request, reply) => {
      queryOf(request);
      const instance = await control.instance(request.params.id);
      const { classification, reasons } = healthOf(instance);
      return answerJson(reply, InstanceHealthSchema, {
        instanceId: instance.instanceId,
        classification,
        reasons: [...reasons],
      });
    },
  );

  app.get(
    "/runtime/status",
    {
      config: doc("An instance's own report, and its capabilities.", ["instance"], GetStatusResponseSchema),
    },
    async (request, reply) => {
      const query = queryOf(request);
      return answerJson(reply, GetStatusResponseSchema, await control.status(required(query, "instance")));
    },
  );

  app.get(
    "/runtime/resources",
    {
      config: doc(
        "The live resources of an instance, with their contracts.",
        ["instance"],
        ListResourcesResponseSchema,
      ),
    },
    async (request, reply) => {
      const query = queryOf(request);
      return answerJson(
        reply,
        ListResourcesResponseSchema,
        await control.catalog(required(query, "instance")),
      );
    },
  );

  app.get<{ Params: { "*": string } }>(
    "/runtime/query/*",
    { config: doc("A read model that an instance reports.", ["instance"], QueryResponseSchema) },
    async (request, reply) => {
      const query = queryOf(request);
      const instanceId = required(query, "instance");
      return answerJson(reply, QueryResponseSchema, await control.query(instanceId, request.params["*"]));
    },
  );
}
