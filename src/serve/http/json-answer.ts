import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { FastifyReply } from "fastify";

/** Sends a message in the form of the control and live planes: lower camel case, zero values present. */
export function answerJson<Desc extends DescMessage>(
  reply: FastifyReply,
  schema: Desc,
  init: MessageInitShape<Desc>,
): FastifyReply {
  const body = toJson(schema, create(schema, init), { alwaysEmitImplicit: true });
  return reply.type("application/json; charset=utf-8").send(JSON.stringify(body));
}
