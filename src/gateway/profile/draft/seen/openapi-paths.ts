import { z } from "zod";

/** A path that supports GET, and its query parameters. */
export interface KnownPath {
  readonly path: string;
  readonly parameters: readonly string[];
  /** What the document says about parameters, by name. */
  readonly about?: Readonly<Record<string, AboutParameter>>;
}

export interface AboutParameter {
  readonly description: string | undefined;
  /** The largest value. */
  readonly maximum: number | undefined;
}

const parameter = z.object({
  name: z.string().optional(),
  in: z.string().optional(),
  $ref: z.string().optional(),
  description: z.string().optional().catch(undefined),
  schema: z
    .object({ maximum: z.number().optional().catch(undefined) })
    .optional()
    .catch(undefined),
});
const operation = z.object({ parameters: z.array(parameter).catch([]).optional() });
const schema = z.object({
  servers: z
    .array(z.object({ url: z.string() }))
    .catch([])
    .optional(),
  paths: z.record(
    z.string(),
    z.object({
      get: operation.optional().catch(undefined),
      parameters: z.array(parameter).catch([]).optional(),
    }),
  ),
  components: z
    .object({ parameters: z.record(z.string(), parameter).catch({}).optional() })
    .catch({})
    .optional(),
});

/** The paths in an OpenAPI document; undefined if it is not one. `base` is its first server's path. */
export function openApiPaths(
  value: unknown,
): { readonly base: string; readonly paths: readonly KnownPath[] } | undefined {
  const parsed = schema.safeParse(value);
  if (!parsed.success) return undefined;
  const { servers = [], paths, components } = parsed.data;
  const named = components?.parameters ?? {};
  const known = Object.entries(paths).flatMap(([path, item]): KnownPath[] => {
    if (item.get === undefined || !path.startsWith("/")) return [];
    const all = [...(item.parameters ?? []), ...(item.get.parameters ?? [])].map((one) =>
      one.$ref === undefined ? one : (named[one.$ref.split("/").at(-1) ?? ""] ?? {}),
    );
    const query = all.filter((one) => one.in === "query" && one.name);
    const about = query.map(({ name, description, schema: of }) => [
      name!,
      { description, maximum: of?.maximum },
    ]);
    return [{ path, parameters: query.map(({ name }) => name!), about: Object.fromEntries(about) }];
  });
  const server = servers[0]?.url ?? "";
  const base = URL.canParse(server, "http://localhost") ? new URL(server, "http://localhost").pathname : "";
  return { base: base.replace(/\/+$/, ""), paths: known };
}
