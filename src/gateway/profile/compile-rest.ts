import type { ErrorCode } from "../../model/error.ts";
import { filterNames, type Table } from "../../model/profile/table.ts";
import type { KeyPath } from "../../model/yaml/tree.ts";
import type { CompileContext } from "./compile-context.ts";
import { compileDocuments } from "./compile-documents.ts";
import { compileRequest, type RestFile } from "./compile-request.ts";
import { type ErrorWord, errorWords } from "./error-schema.ts";
import type { ErrorWords, Pages, RestProfile, RestRequest, RestRoute, RowForm } from "./profile.ts";
import type { ProfileFile, TableFile } from "./profile-schema.ts";

/** Default media types of rows. */
export const usualMediaTypes = { lines: "application/x-ndjson", array: "application/json" } as const;

/** Compiles the REST part of a profile and reports its faults as a whole. */
export function compileRest(
  file: ProfileFile,
  described: readonly (readonly [Table, TableFile])[],
  context: CompileContext,
): RestProfile {
  const rest = file.rest ?? {};
  const routes = described.flatMap(([table, own]) => {
    const route = compileRoute(table, own, file, context);
    return route === null ? [] : [[table.name, route] as const];
  });
  return {
    base: rest.base ?? "",
    documents: compileDocuments(file.documents ?? {}, file, context),
    tables: Object.fromEntries(routes),
    errors: compileErrors(file.errors ?? {}, context),
  };
}

/** Where a table's rows are in answers. */
export function rowFormOf(own: TableFile, rest: RestFile | undefined): RowForm {
  const form = own.rows ?? rest?.rows ?? "lines";
  if (form === "lines") return { form: "lines", mediaTypes: [usualMediaTypes.lines] };
  if (form === "array") return { form: "array", path: [], mediaTypes: [usualMediaTypes.array] };
  const { array, media_types: mediaTypes } = form;
  return array === undefined
    ? { form: "lines", mediaTypes: mediaTypes ?? [usualMediaTypes.lines] }
    : { form: "array", path: array, mediaTypes: mediaTypes ?? [usualMediaTypes.array] };
}

function compileRoute(
  table: Table,
  own: TableFile,
  file: ProfileFile,
  context: CompileContext,
): RestRoute | null {
  const { rest = {} } = file;
  const at: KeyPath = ["tables", table.name];
  if (own.path === undefined) {
    if (file.rpc === undefined) {
      context.fault([...at, "path"], "is missing", "Add it, for example `path: /runs/{run}/fills`.");
    }
    return null;
  }
  const request = compileRequest(own.path, own, rest, table.filters);
  const pages = compilePages(own.pages ?? rest.pages ?? "none", request);
  const rows = rowFormOf(own, rest);
  const order = own.order ?? rest.order ?? "ascending";
  const largest = own.largest_limit ?? rest.largest_limit ?? "none";
  const pagesAt = context.firstOf([...at, "pages"], ["rest", "pages"], at);
  const orderAt = context.firstOf([...at, "order"], ["rest", "order"], at);

  if (!own.path.includes("{run}") && request.parameters.run === undefined) {
    context.fault(
      [...at, "path"],
      "does not name the run, nor does a parameter: the gateway would return the rows of all runs",
      "Put {run} into the path, or name the parameter in parameters.run.",
    );
  }
  if (pages === null) {
    context.fault(
      pagesAt,
      "needs size, the parameter for the page size: rows lost between two pages show only with another size",
      "Add size, or name the parameter in parameters.limit.",
    );
    return null;
  }
  if ((pages.by === "offset" || pages.by === "number") && order === "none") {
    context.fault(
      orderAt,
      `is none, but pages by ${pages.by} need an order`,
      "Write the order that the gateway keeps, or use pages by cursor.",
    );
  }
  if (order === "none" && pages.by === "none" && request.parameters.limit !== undefined) {
    context.fault(
      orderAt,
      "is none, so an answer cut off by a limit could not be continued",
      "Write the order that the gateway keeps, or remove the limit: `parameters: { limit: none }`.",
    );
  }
  if (rows.form === "lines") {
    for (const key of ["next", "total"] as const) {
      const place = (pages as { readonly next?: object; readonly total?: object })[key];
      if (place === undefined || !("body" in place)) continue;
      context.fault(
        context.firstOf([...at, "pages", key], ["rest", "pages", key], at),
        "is a path in a JSON document, but rows come as lines",
        "Name a header, as { header: NAME }, or say where the list of rows is: `rows: { array: data }`.",
      );
    }
  }
  refuseTwice(request, pages, rest, at, context);
  return { ...request, pages, rows, order, largestLimit: largest === "none" ? undefined : largest };
}

/** Null if the size of pages cannot be requested. */
function compilePages(file: NonNullable<RestFile["pages"]>, { parameters }: RestRequest): Pages | null {
  if (file === "none" || file.by === "none") return { by: "none" };
  const { send = "", next, size = parameters.limit, first = 1, total } = file;
  switch (file.by) {
    case "cursor":
      return next === undefined ? null : { by: "cursor", send, next, total };
    case "address":
      return next === undefined ? null : { by: "address", next, total };
    case "link":
      return { by: "link", total };
    case "offset":
      return size === undefined ? null : { by: "offset", send, size, total };
    case "number":
      return size === undefined ? null : { by: "number", send, size, first, total };
  }
}

/** Refuses one name for two parameters: the gateway would read only one of them. */
function refuseTwice(
  { parameters }: RestRequest,
  pages: Pages,
  rest: RestFile,
  at: KeyPath,
  context: CompileContext,
): void {
  const { filters, fixed, ...plain } = parameters;
  const uses: (readonly [what: string, name: string])[] = [
    ...Object.entries(plain).flatMap(([key, name]) => (name === undefined ? [] : [[key, name] as const])),
    ...filterNames.flatMap((filter) => {
      const name = filters[filter];
      return name === undefined ? [] : [[`filters.${filter}`, name] as const];
    }),
    ...Object.keys(fixed).map((name) => ["fixed", name] as const),
    ...Object.keys(rest.keys ?? {}).map((name) => ["rest.keys", name] as const),
    ...("send" in pages ? [["pages.send", pages.send] as const] : []),
    ...("size" in pages && pages.size !== parameters.limit ? [["pages.size", pages.size] as const] : []),
  ];
  const seen = new Map<string, string>();
  for (const [what, name] of uses) {
    const other = seen.get(name);
    if (other === undefined) {
      seen.set(name, what);
      continue;
    }
    const [section, key] = what.startsWith("pages.") ? ["pages", what.slice(6)] : ["parameters", what];
    const inside: KeyPath = [section!, ...key!.split(".")];
    context.fault(
      context.firstOf([...at, ...inside], ["rest", ...inside], at),
      `is the parameter ${JSON.stringify(name)}, which is already used for ${other}`,
      "Use a different parameter for each.",
    );
  }
}

function compileErrors(file: NonNullable<ProfileFile["errors"]>, context: CompileContext): ErrorWords {
  const codes = new Map<string, ErrorCode>();
  for (const word of Object.keys(errorWords) as ErrorWord[]) {
    for (const [index, code] of (file[word] ?? []).entries()) {
      if (codes.has(String(code))) {
        context.fault(["errors", word, index], "is in two lists", "Remove one of the two.");
      }
      codes.set(String(code), errorWords[word]);
      if (typeof code === "string" && file.code === undefined) {
        context.fault(
          ["errors", word, index],
          "is a code, but the profile does not say where answers have codes",
          "Add code, for example `code: error.code`. A status is a number without quotes.",
        );
      }
    }
  }
  return { code: file.code ?? [], codes: Object.fromEntries(codes) };
}
