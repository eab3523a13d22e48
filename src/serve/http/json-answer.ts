import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { FastifyReply } from "fastify";

/** Answers with a message as the control and live planes have it: lower camel case, zero values present. */
export function answerJson<Desc extends DescMessage>(
  reply: FastifyReply,
  schema: Desc,
  init: MessageInitShape<Desc>,
): FastifyReply {
  const body = toJson(schema, create(schema, init), { alwaysEmitImplicit: true });
  return reply.type("application/json; charset=utf-8").send(JSON.stringify(body));
}
