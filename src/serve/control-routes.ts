import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply } from "fastify";
import {
  GetHealthResponseSchema,
  RunDoctorResponseSchema,
} from "../gen/example/gateway/v1/gateway_service_pb.ts";
import {
  InstanceSchema,
  ListInstancesResponseSchema,
} from "../gen/example/gateway/v1/instance_service_pb.ts";
import {
  GetStatusResponseSchema,
  ListResourcesResponseSchema,
  type ResourceContractSchema,
} from "../gen/example/gateway/v1/runtime_service_pb.ts";
import type { ControlPlane } from "../model/control.ts";
import type { HistorySource } from "../model/source.ts";
import { isTableName, tableNamed } from "../model/table.ts";
import { wallClock } from "../model/time.ts";
import { doctorReport, health, instanceInit, instanceNamed, inventory } from "./control-documents.ts";
import { checkedQuery, type RawQuery, required } from "./row-query.ts";

export interface ControlRoutesOptions {
  /** Where it is missing only /health answers: there is nothing to control. */
  readonly control: ControlPlane | undefined;
  readonly source: HistorySource;
}

/** /health, and where there is a control plane /doctor, the inventory, and what instances report of themselves. */
export function controlRoutes(app: FastifyInstance, { control, source }: ControlRoutesOptions): void {
  app.get("/health", (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answer(reply, GetHealthResponseSchema, health());
  });
  if (control === undefined) return;

  app.get("/doctor", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answer(reply, RunDoctorResponseSchema, await doctorReport(control));
  });

  app.get("/instances", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answer(reply, ListInstancesResponseSchema, await inventory(control));
  });

  app.get<{ Params: { id: string } }>("/instances/:id", async (request, reply) => {
    checkedQuery(request.query as RawQuery, []);
    return answer(reply, InstanceSchema, instanceInit(await instanceNamed(control, request.params.id)));
  });

  app.get("/runtime/status", async (request, reply) => {
    const query = checkedQuery(request.query as RawQuery, ["instance"]);
    const instance = await instanceNamed(control, required(query, "instance"));
    const isConnected = instance.runtimeState !== "UNKNOWN";
    const runs = isConnected ? await source.runs(instance.instanceId) : null;
    const run = runs?.find(({ runId }) => runId === instance.currentRunId);
    return answer(reply, GetStatusResponseSchema, {
      transport: { connected: isConnected, kind: "in_process", tsLastSeen: isConnected ? wallClock() : 0n },
      engine: { state: instance.runtimeState, runId: instance.currentRunId, tsStarted: run?.started ?? 0n },
      // subscriptions and read models are not served: false is the contract here, not a failure
      capabilities: { resources: true, history: true },
      capabilityErrors: [],
    });
  });

  app.get("/runtime/resources", async (request, reply) => {
    const query = checkedQuery(request.query as RawQuery, ["instance"]);
    const instance = await instanceNamed(control, required(query, "instance"));
    const resources = await control.resources(instance.instanceId);
    return answer(reply, ListResourcesResponseSchema, {
      runtime: { instanceId: instance.instanceId, runId: instance.currentRunId, catalogVersion: "1" },
      resources: resources.map(({ resourceKey, table, symbol, venue, account, portfolio }) => ({
        resourceKey,
        label: resourceKey,
        symbol,
        venue,
        account,
        portfolio,
        contract: contractOf(table),
      })),
    });
  });
}

function contractOf(table: string): MessageInitShape<typeof ResourceContractSchema> {
  return {
    model: table,
    payloadSchema: isTableName(table) ? tableNamed(table).message.typeName : "",
    deliveryModel: table === "order_book" ? "SNAPSHOT" : "EVENT",
    historyModel: table,
    replayPolicy: "NONE",
    mergeModel: "APPEND",
    dropPolicy: "NEVER",
    visibility: "PUBLIC",
  };
}

function answer<Desc extends DescMessage>(
  reply: FastifyReply,
  schema: Desc,
  init: MessageInitShape<Desc>,
): FastifyReply {
  const body = toJson(schema, create(schema, init), { alwaysEmitImplicit: true });
  return reply.type("application/json; charset=utf-8").send(JSON.stringify(body));
}
