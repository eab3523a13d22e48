import { type FilterName, type TableName, tableNamed } from "../../model/profile/table.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { Profile, RestRoute } from "../profile/profile.ts";
import { boundsTaken, stepOf } from "./written-bounds.ts";

/** How a table's route differs from the contract, by the profile of this name. */
export function routeTraitsOf(
  table: TableName,
  route: RestRoute,
  { name, maps }: Pick<Profile, "name" | "maps">,
): RouteTraits {
  const map = maps[table];
  const names = (column: string) => map === undefined || map.columns[column]?.kind === "field";
  const bounds = { ...boundsTaken(route), stepNs: stepOf(route.times) };
  const filters = tableNamed(table).filters.filter(
    (filter: FilterName) => route.parameters.filters[filter] !== undefined,
  );
  return {
    map,
    ...(name === "default" ? {} : { profile: name }),
    namesRun: names("run_id"),
    namesInstance: names("instance_id"),
    pages: pagesOf(route),
    bounds,
    order: route.order,
    filters,
    takesLimit: route.parameters.limit !== undefined || "size" in route.pages,
    notes: notesOf(route, bounds),
  };
}

function pagesOf({ pages }: RestRoute): RouteTraits["pages"] {
  switch (pages.by) {
    case "none":
    case "offset":
    case "number":
      return pages.by;
    default:
      return "cursor";
  }
}

function notesOf({ pages, order }: RestRoute, bounds: RouteTraits["bounds"]): string[] {
  const notes: string[] = [];
  if (pages.by === "offset") notes.push("paged by offset");
  if (pages.by === "number") notes.push("paged by page number, each window fetched twice");
  if (!bounds.from && !bounds.to) notes.push("fetched whole each time: the gateway takes no time bounds");
  else if (!bounds.from) notes.push("the gateway takes no beginning of a time window");
  else if (!bounds.to) notes.push("the gateway takes no end of a time window");
  if (order === "descending") notes.push("sent newest first");
  if (order === "none") notes.push("sent in no order");
  return notes;
}
