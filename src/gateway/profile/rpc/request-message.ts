import { create, fromJson, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import type { FilterName } from "../../../model/profile/table.ts";
import type { RpcRequest } from "../profile.ts";

/** The values of a request; undefined ones are not sent. */
export interface RequestValues {
  readonly instanceId?: string | undefined;
  readonly runId?: string | undefined;
  /** In the form of the request's times. */
  readonly bounds?: { readonly from: string | undefined; readonly to: string | undefined } | undefined;
  readonly limit?: number | undefined;
  readonly token?: string | undefined;
  readonly filters?: readonly (readonly [FilterName, string])[] | undefined;
}

/** A request's message, or why the profile's fixed values do not fit it. */
export function requestMessage(
  { method, places, fixed }: RpcRequest,
  values: RequestValues,
): Uint8Array | { readonly message: string } {
  const json = structuredClone(fixed);
  const put = (path: readonly string[] | undefined, value: JsonValue | undefined) => {
    if (path !== undefined && value !== undefined) putAt(json, path, value);
  };
  put(places.instance, values.instanceId);
  put(places.run, values.runId);
  put(places.from, values.bounds?.from);
  put(places.to, values.bounds?.to);
  put(places.limit, values.limit);
  put(places.token, values.token === "" ? undefined : values.token);
  for (const [filter, value] of values.filters ?? []) put(places.filters[filter], value);
  const { input } = method;
  try {
    return toBinary(input, Object.keys(json).length === 0 ? create(input) : fromJson(input, json));
  } catch (thrown) {
    return { message: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function putAt(json: JsonObject, path: readonly string[], value: JsonValue): void {
  let here = json;
  for (const name of path.slice(0, -1)) {
    const inside = Object.hasOwn(here, name) ? here[name] : undefined;
    const next: JsonObject =
      typeof inside === "object" && inside !== null && !Array.isArray(inside) ? inside : {};
    here[name] = next;
    here = next;
  }
  here[path.at(-1)!] = value;
}
