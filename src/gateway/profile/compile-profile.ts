import { type Table, tables } from "../../model/profile/table.ts";
import type { KeyPath } from "../../model/yaml/tree.ts";
import { headerNamePattern, ownHeaders } from "../options.ts";
import type { CompileContext } from "./compile-context.ts";
import { compileRest, rowFormOf } from "./compile-rest.ts";
import { compileRowMap } from "./compile-row-map.ts";
import type { Profile, ProfileSecret } from "./profile.ts";
import type { ProfileFile, TableFile } from "./profile-schema.ts";
import { compileRpc } from "./rpc/compile-rpc.ts";

/** Compiles a profile's file. Faults go to the context; if there are any, the result must not be used. */
export function compileProfile(file: ProfileFile, name: string, context: CompileContext): Profile {
  const described: (readonly [Table, TableFile])[] = [];
  for (const table of tables) {
    const own = file.tables?.[table.name];
    const overRpc = file.rpc?.tables?.[table.name] !== undefined;
    if (own === "none" && overRpc) {
      context.fault(
        ["rpc", "tables", table.name],
        "is a table that the profile says does not exist",
        "Remove one of the two.",
      );
    }
    if (own === "none" || (own === undefined && !overRpc)) continue;
    if (own?.path === undefined && file.rpc !== undefined && !overRpc) {
      const hint = `Add its method as rpc.tables.${table.name}, or its path here.`;
      context.fault(["tables", table.name], "has neither a path nor a method", hint);
    }
    described.push([table, own ?? {}]);
  }
  const none = tables.filter((table) => file.tables?.[table.name] === "none");
  if (described.length === 0) {
    const hint = "Add a table, for example `tables: { fills: { path: /runs/{run}/fills } }`.";
    context.fault(context.has(["tables"]) ? ["tables"] : [], "must describe at least one table", hint);
  }
  const maps = described.flatMap(([table, own]) => {
    const isLines = rowFormOf(own, file.rest).form === "lines";
    const map = compileRowMap(table, own, file.rows, isLines, context);
    return map === undefined ? [] : [[table.name, map] as const];
  });
  if (file.rows?.ties === "arrival" && !maps.some(([, map]) => map.columns.seq?.kind === "derived")) {
    context.fault(["rows", "ties"], "is only for rows with `seq: derived`", "Remove it.");
  }
  // documents (as opposed to rpc.documents) are requested over REST
  const hasRest =
    file.documents !== undefined ||
    file.rpc === undefined ||
    file.rest !== undefined ||
    described.some(([, { path }]) => path !== undefined);
  return {
    name: file.name,
    file: name,
    headers: secretsOf("headers", file.headers ?? {}, context),
    keys: secretsOf("keys", file.rest?.keys ?? {}, context),
    rest: hasRest ? compileRest(file, described, context) : undefined,
    rpc: file.rpc === undefined ? undefined : compileRpc(file.rpc, Object.fromEntries(maps), context),
    maps: Object.fromEntries(maps),
    none: none.map((table) => table.name),
    described: described.map(([table]) => table.name),
  };
}

/** The headers or keys that a profile names, and where their values come from. */
export function secretsOf(
  section: "headers" | "keys",
  named: Readonly<Record<string, { readonly env?: string | undefined; readonly file?: string | undefined }>>,
  context: CompileContext,
): ProfileSecret[] {
  const at = section === "headers" ? ["headers"] : ["rest", "keys"];
  const seen = new Map<string, string>();
  return Object.entries(named).map(([name, { env, file }]): ProfileSecret => {
    const id = section === "headers" ? name.toLowerCase() : name;
    if (seen.has(id))
      context.fault([...at, name], `is the same header as ${seen.get(id)}`, "Remove one of the two.");
    seen.set(id, name);
    if (section === "headers") refuseName([...at, name], name, context);
    if (file === undefined) return { name, from: { env: env ?? "" } };
    return { name, from: { file: context.resolve([...at, name, "file"], file) } };
  });
}

function refuseName(at: KeyPath, name: string, context: CompileContext): void {
  if (ownHeaders.includes(name.toLowerCase())) {
    context.fault(at, "is a header that runvault sets itself", "Remove it.");
  } else if (!headerNamePattern.test(name)) {
    context.fault(
      at,
      "is not a valid header name",
      "Write it as the gateway's documentation does, such as X-Api-Key.",
    );
  }
}
