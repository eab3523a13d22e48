import type { FastifyInstance } from "fastify";
import { LifecycleReceiptSchema } from "../../gen/example/gateway/v1/instance_service_pb.ts";
import type { ControlPlane } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { answerJson } from "../http/json-answer.ts";
import { queryOf } from "../route-doc.ts";

const actions = ["start", "stop", "restart"] as const;

/**
 * POST start, stop and restart of an instance, each accepted with 202. The interface has no request body, so one is
 * refused.
 */
export function lifecycleRoutes(app: FastifyInstance, control: ControlPlane): void {
  // clients that always send a content type but no body are fine
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: 1024 }, (_request, body, done) => {
    if (body.length === 0) done(null);
    else done(new RunvaultError("invalid_argument", "lifecycle actions take no request body"));
  });
  for (const action of actions) {
    const doc = {
      summary: `Asks to ${action} an instance; acceptance does not mean that it has happened.`,
      query: [],
      answer: { message: LifecycleReceiptSchema, statuses: [202] },
    } as const;
    app.post<{ Params: { id: string } }>(
      `/instances/:id/${action}`,
      { config: { doc } },
      async (request, reply) => {
        queryOf(request);
        await control.act(request.params.id, action);
        return answerJson(reply.code(202), LifecycleReceiptSchema, {
          instanceId: request.params.id,
          action,
          accepted: true,
        });
      },
    );
  }
}
