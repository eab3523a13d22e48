import type { FilterName } from "../../model/profile/table.ts";
import type { RestRequest } from "./profile.ts";
import type { ProfileFile } from "./profile-schema.ts";

export type RestFile = NonNullable<ProfileFile["rest"]>;
export type ParametersFile = NonNullable<RestFile["parameters"]>;

interface RequestFile {
  readonly method?: "GET" | "POST" | undefined;
  readonly parameters?: ParametersFile | undefined;
  readonly times?: RestFile["times"];
}

/** A request by its own keys, with defaults from `rest`. */
export function compileRequest(
  path: string,
  own: RequestFile,
  rest: RestFile,
  filters: readonly FilterName[],
): RestRequest {
  const parameter = (key: "instance" | "run" | "from" | "to" | "limit") =>
    named(own.parameters?.[key] ?? rest.parameters?.[key]);
  const chosen = filters.flatMap((filter) => {
    const name = named(own.parameters?.filters?.[filter] ?? rest.parameters?.filters?.[filter]);
    return name === undefined ? [] : [[filter, name] as const];
  });
  return {
    path,
    method: own.method ?? rest.method ?? "GET",
    parameters: {
      instance: path.includes("{instance}") ? undefined : parameter("instance"),
      run: path.includes("{run}") ? undefined : parameter("run"),
      from: parameter("from"),
      to: parameter("to"),
      limit: parameter("limit"),
      filters: Object.fromEntries(chosen),
      fixed: own.parameters?.fixed ?? rest.parameters?.fixed ?? {},
    },
    times: {
      ...(own.times?.unit ?? rest.times?.unit ?? { unit: "ns" }),
      from: own.times?.from ?? rest.times?.from ?? "inclusive",
      to: own.times?.to ?? rest.times?.to ?? "exclusive",
    },
  };
}

function named(name: string | undefined): string | undefined {
  return name === "none" ? undefined : name;
}
