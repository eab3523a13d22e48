import { RunvaultError } from "../model/error.ts";
import type { FilterName, TableName } from "../model/profile/table.ts";
import type { RunRef } from "../model/source.ts";
import type { Profile } from "./profile/profile.ts";
import { placeOfRun } from "./request-checks.ts";

/** How a transport names the parts of its requests. */
export interface RouteWords {
  /** A route, or a method. */
  readonly route: string;
  /** What names a filter in a request. */
  readonly parameter: string;
  /** The profile key of the tables. */
  readonly tables: string;
}

/** The table's route; throws if the profile has none. */
export function describedRoute<Route>(
  { file, name, none }: Profile,
  routes: Readonly<Partial<Record<TableName, Route>>>,
  table: TableName,
  run: RunRef,
  words: RouteWords,
): Route {
  const route = routes[table];
  if (route !== undefined) return route;
  const place = { ...placeOfRun(run), table };
  if (none.includes(table)) {
    throw new RunvaultError("history_unavailable", `the profile ${name} says that there are no ${table}`, {
      place,
    });
  }
  throw new RunvaultError("route_not_found", `the profile ${name} has no ${words.route} for ${table}`, {
    place,
    hint: `Add ${table} to ${words.tables} of ${file}, or leave it out of --tables.`,
  });
}

/** Throws `invalid_argument` for a filter that the table's route does not support. */
export function requireTaken(
  filters: readonly (readonly [FilterName, string])[],
  taken: Readonly<Partial<Record<FilterName, unknown>>>,
  table: TableName,
  { name }: Profile,
  { parameter }: RouteWords,
): void {
  const [other] = filters.find(([filter]) => taken[filter] === undefined) ?? [];
  if (other === undefined) return;
  throw new RunvaultError("invalid_argument", `the gateway's ${table} cannot be filtered by ${other}`, {
    place: { table },
    hint: `The profile ${name} names no ${parameter} for it.`,
  });
}
