import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { scalar } from "../draft-line.ts";
import { type ParameterRole, parameterRole } from "../seen/guessed-names.ts";
import { isCount, isText, isTime, singleFields, telling } from "./message-fields.ts";

/** The probable purpose of each field of a request, by its name and kind. */
export function requestNames(input: DescMessage): Partial<Record<ParameterRole, readonly string[]>> {
  const names: Partial<Record<ParameterRole, readonly string[]>> = {};
  for (const { path, field } of singleFields(input)) {
    const role = parameterRole(telling(path));
    if (role !== undefined && isFit(role, field)) names[role] ??= path;
  }
  return names;
}

function isFit(role: ParameterRole, field: DescField): boolean {
  if (role === "limit") return isCount(field);
  return role === "from" || role === "to" ? isTime(field) : isText(field);
}

/** Fields of a request as a profile writes them. */
export function requestText(
  names: Partial<Record<ParameterRole, readonly string[]>>,
  roles: readonly ParameterRole[],
): string {
  const sent = roles.flatMap((role) => {
    const path = names[role];
    return path === undefined ? [] : [`${role}: ${scalar(dotted(path))}`];
  });
  return sent.length === 0 ? "{}" : `{ ${sent.join(", ")} }`;
}

export function dotted(path: readonly string[]): string {
  return path.join(".");
}
