import type { RpcDocuments, RpcRequest, RpcRoute } from "../profile.ts";
import type { CheckedDocuments, CheckedRequest, CheckedRoute } from "./asker.ts";

/** The media type shown for RPC. */
export const protobufType = "application/proto";

/** A table over RPC, in the form used by checks. */
export function routeOverRpc(route: RpcRoute): CheckedRoute {
  const { answer, places, largestLimit } = route;
  return {
    ...requestOverRpc(route),
    pages:
      places.token === undefined || answer.next === undefined
        ? { by: "none" }
        : { by: "cursor", send: places.token.join("."), next: { body: answer.next } },
    rows: { form: "array", path: listOf(route), mediaTypes: [protobufType] },
    order: "ascending",
    largestLimit,
  };
}

/** The path of the repeated field, up to the list: the message in it that holds each row is left out. */
export function listOf({ method, answer }: RpcRoute): readonly string[] {
  let message: RpcRequest["method"]["output"] | undefined = method.output;
  for (const [at, name] of answer.rows.entries()) {
    const field: RpcRequest["method"]["output"]["fields"][number] | undefined = message?.fields.find(
      (one) => one.name === name,
    );
    if (field?.fieldKind === "list") return answer.rows.slice(0, at + 1);
    message = field?.fieldKind === "message" ? field.message : undefined;
  }
  return answer.rows;
}

/** The documents over RPC, in the form used by checks. */
export function documentsOverRpc(documents: RpcDocuments): CheckedDocuments {
  const { instances, runs, facts, summary, resources, instance, given } = documents;
  return {
    instances: instances && { ...instances, ...requestOverRpc(instances) },
    runs: runs && { ...runs, ...requestOverRpc(runs) },
    facts: facts && { ...facts, ...requestOverRpc(facts) },
    summary: summary && requestOverRpc(summary),
    resources: resources && requestOverRpc(resources),
    instance: instance && { ...instance, ...requestOverRpc(instance) },
    given,
  };
}

function requestOverRpc(rpc: RpcRequest): CheckedRequest {
  const { method, places, times } = rpc;
  const name = (path: readonly string[] | undefined) => path?.join(".");
  const filters = Object.entries(places.filters).map(([filter, path]) => [filter, path.join(".")] as const);
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    method: "POST",
    parameters: {
      instance: name(places.instance),
      run: name(places.run),
      from: name(places.from),
      to: name(places.to),
      limit: name(places.limit),
      filters: Object.fromEntries(filters),
      fixed: {},
    },
    times,
    rpc,
  };
}
