import { z } from "zod";
import type { FilterName } from "../../model/profile/table.ts";
import { filterFields, jsonOf, type TableAsks } from "./table-asks.ts";

type Filters = Partial<Record<FilterName, string | undefined>>;

const resourcesSchema = z.object({
  resources: z.array(z.object({ table: z.string(), ...filterFields })),
});

/** The filter values that the run's resources list for the table; none if that document is missing or not of this form. */
export async function listedFilters({
  source,
  run,
  table,
  signal,
}: Pick<TableAsks, "source" | "run" | "table" | "signal">): Promise<Filters[]> {
  const document = await source.document(run, "resources", signal);
  const parsed = resourcesSchema.safeParse(document === null ? null : jsonOf(document));
  return (parsed.data?.resources ?? []).filter((resource) => resource.table === table.name);
}
