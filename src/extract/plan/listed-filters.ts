import { z } from "zod";
import type { FilterName } from "../../model/profile/table.ts";
import { filterFields, jsonOf, type TableAsks } from "./table-asks.ts";

type Filters = Partial<Record<FilterName, string | undefined>>;

const resourcesSchema = z.object({
  resources: z.array(z.object({ table: z.string(), ...filterFields })),
});

/** What the run's resources say of the table's filters; nothing where there is no such document, or another. */
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
