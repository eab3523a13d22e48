import type { KeyPath } from "../../model/yaml/tree.ts";
import type { CompileContext } from "./compile-context.ts";
import { compileRequest, type ParametersFile, type RestFile } from "./compile-request.ts";
import { factFields, runFields } from "./document-fields.ts";
import type { FactFields, RestDocuments, RestRequest } from "./profile.ts";
import type { ProfileFile } from "./profile-schema.ts";

type DocumentsFile = NonNullable<ProfileFile["documents"]>;
type Described<K extends keyof DocumentsFile> = Exclude<NonNullable<DocumentsFile[K]>, "none">;

/** Whether a request may name a run, an instance, and bounds. */
interface Names {
  readonly instance: boolean;
  readonly run: boolean;
  readonly bounds: boolean;
}

/** Compiles a gateway's documents and reports their faults as a whole. */
export function compileDocuments(
  documents: DocumentsFile,
  file: ProfileFile,
  context: CompileContext,
): RestDocuments {
  const rest = file.rest ?? {};
  const own = <K extends keyof DocumentsFile>(key: K) => {
    const document = documents[key];
    return document === undefined || document === "none" ? undefined : (document as Described<K>);
  };
  const request = (key: string, of: Parameters<typeof requestOf>[1], names: Names) =>
    requestOf(["documents", key], of, names, rest, context);
  const ofRun: Names = { instance: true, run: true, bounds: false };
  const instances = own("instances");
  const runs = own("runs");
  const storage = own("storage");
  const summary = own("summary");
  const resources = own("resources");
  const instance = own("instance");
  const given = Object.entries(documents.given ?? {});
  return {
    instances: instances && {
      ...request("instances", instances, { instance: false, run: false, bounds: false }),
      list: instances.list,
      id: instances.id ?? [],
      runs: instances.runs,
      isWhole: instances.whole,
    },
    runs: runs && {
      ...request("runs", runs, { instance: true, run: false, bounds: false }),
      list: runs.list,
      ...runFields(runs, runs.unit ?? "ns"),
      isWhole: runs.whole,
    },
    facts: storage && {
      ...request("storage", storage, { ...ofRun, bounds: true }),
      ...restFacts(storage, rest, context),
    },
    summary: summary && request("summary", summary, ofRun),
    resources: resources && request("resources", resources, ofRun),
    instance: instance && {
      ...request("instance", instance, { instance: true, run: false, bounds: false }),
      currentRun: instance.current_run,
    },
    given: Object.fromEntries(given),
  };
}

interface DocumentRequest {
  readonly path: string;
  readonly method?: "GET" | "POST" | undefined;
  readonly parameters?: ParametersFile | undefined;
  readonly times?: RestFile["times"];
}

function requestOf(
  at: KeyPath,
  own: DocumentRequest,
  names: Names,
  rest: RestFile,
  context: CompileContext,
): RestRequest {
  for (const id of ["instance", "run"] as const) {
    if (names[id] || !own.path.includes(`{${id}}`)) continue;
    const hint =
      at[1] === "instances"
        ? "It is requested before any instance is known."
        : "It is requested before any run is known.";
    context.fault([...at, "path"], `cannot contain {${id}}`, hint);
  }
  const { instance, run, from, to } = rest.parameters ?? {};
  const inherited = {
    ...(names.instance ? { instance } : {}),
    ...(names.run ? { run } : {}),
    ...(names.bounds ? { from, to } : {}),
  };
  // the method for rows does not apply: if rows are requested by POST, lists need not be
  const request = compileRequest(
    own.path,
    own,
    { parameters: inherited, times: names.bounds ? rest.times : undefined },
    [],
  );
  if (names.run && !own.path.includes("{run}") && request.parameters.run === undefined) {
    context.fault(
      [...at, "path"],
      "does not name the run, nor does a parameter",
      "Put {run} into the path, or name the parameter in parameters.run.",
    );
  }
  if (at[1] === "runs" && !own.path.includes("{instance}") && request.parameters.instance === undefined) {
    context.fault(
      [...at, "path"],
      "does not name the instance, nor does a parameter: each instance would get the runs of all",
      "Put {instance} into the path, or name the parameter in parameters.instance.",
    );
  }
  return request;
}

function restFacts(storage: Described<"storage">, rest: RestFile, context: CompileContext): FactFields {
  const at: KeyPath = ["documents", "storage"];
  const from = storage.parameters?.from ?? rest.parameters?.from;
  const to = storage.parameters?.to ?? rest.parameters?.to;
  const asked = {
    unit: storage.unit ?? "ns",
    takesBounds: [from, to].every((name) => name !== undefined && name !== "none"),
    noBounds: "no parameters for bounds are named",
  };
  return { ...factFields(at, storage, asked, context), tableParameter: storage.table_parameter };
}
