import { RunvaultError } from "../../model/error.ts";
import type { FilterName } from "../../model/profile/table.ts";
import type { RestRequest } from "../profile/profile.ts";
import type { RestCall } from "./rest-client.ts";
import type { WrittenBounds } from "./written-bounds.ts";

/** The subject of a request; undefined values are not sent. */
export interface CallValues {
  readonly instanceId?: string | undefined;
  readonly runId?: string | undefined;
  readonly bounds?: Pick<WrittenBounds, "from" | "to"> | undefined;
  readonly limit?: number | undefined;
  readonly filters?: readonly (readonly [FilterName, string])[] | undefined;
  /** Parameters of pages and facts, by the gateway's names; existing ones are overwritten. */
  readonly more?: Readonly<Record<string, string | number>> | undefined;
}

/** A request as sent: its path below the gateway's address, and its body if any. */
export function restCall(
  base: string,
  request: RestRequest,
  values: CallValues,
  accept: readonly string[],
): RestCall {
  const { parameters, method } = request;
  const sent = new Map<string, string | number>();
  const send = (name: string | undefined, value: string | number | undefined) => {
    if (name !== undefined && value !== undefined) sent.set(name, value);
  };
  for (const [name, value] of Object.entries(parameters.fixed)) send(name, value);
  if (!request.path.includes("{instance}")) send(parameters.instance, values.instanceId);
  if (!request.path.includes("{run}")) send(parameters.run, values.runId);
  send(parameters.from, counted(request, values.bounds?.from));
  send(parameters.to, counted(request, values.bounds?.to));
  send(parameters.limit, values.limit);
  for (const [filter, value] of values.filters ?? []) send(parameters.filters[filter], value);
  for (const [name, value] of Object.entries(values.more ?? {})) send(name, value);

  const path = `${base}${request.path
    .replaceAll("{instance}", () => segment("instance", values.instanceId))
    .replaceAll("{run}", () => segment("run", values.runId))}`;
  if (method === "POST") {
    return { method, path, accept, body: Buffer.from(JSON.stringify(Object.fromEntries(sent))) };
  }
  const query = [...sent].map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`,
  );
  if (query.length === 0) return { method, path, accept };
  return { method, path: `${path}${path.includes("?") ? "&" : "?"}${query.join("&")}`, accept };
}

/**
 * A bound in a JSON body: counts that every JSON reader parses exactly are numbers, nanoseconds and RFC 3339 are text.
 */
function counted({ method, times }: RestRequest, text: string | undefined): string | number | undefined {
  if (text === undefined || method === "GET" || times.unit === "rfc3339" || times.unit === "ns") return text;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : text;
}

function segment(what: string, id: string | undefined): string {
  if (id === undefined) throw new RunvaultError("internal", `a path needs the ${what}, which is missing`);
  // a proxy may take these for path steps
  if (id === "." || id === "..") {
    throw new RunvaultError("invalid_argument", `the ${what} id ${id} cannot be part of a URL`);
  }
  return encodeURIComponent(id);
}
