import type { DescMessage, DescMethodUnary, JsonObject } from "@bufbuild/protobuf";
import type { ErrorCode } from "../../model/error.ts";
import type { CountUnit, RowMap, TimeUnit } from "../../model/profile/row-map.ts";
import type { FilterName, TableName } from "../../model/profile/table.ts";
import type { PageLayout } from "../../row/wire/page-index.ts";

/** A gateway that differs, as its profile describes it: checked and compiled, nothing left to guess. */
export interface Profile {
  readonly name: string;
  /** The file, as it was named; `default` for the built-in contract. */
  readonly file: string;
  /** Headers of every request; values are read when the gateway is opened. */
  readonly headers: readonly ProfileSecret[];
  /** Query parameters that carry a secret, which the profile had to accept; masked wherever an address is shown. */
  readonly keys: readonly ProfileSecret[];
  /** Undefined where the gateway has no REST. */
  readonly rest: RestProfile | undefined;
  /** Undefined where it has no RPC. */
  readonly rpc: RpcProfile | undefined;
  /** The map of each table that is described; undefined where its rows are canonical as they come. */
  readonly maps: Readonly<Partial<Record<TableName, RowMap>>>;
  /** Tables of which the profile says that the gateway has no such history. */
  readonly none: readonly TableName[];
  /** Tables that the profile gives a route for. No other table is asked for. */
  readonly described: readonly TableName[];
}

export interface ProfileSecret {
  /** Of the header or parameter. */
  readonly name: string;
  /** An environment variable, or a file beside the profile, absolute. */
  readonly from: { readonly env: string } | { readonly file: string };
}

export interface RestProfile {
  /** Put between the gateway's address and every path; empty or beginning with a slash. */
  readonly base: string;
  readonly documents: RestDocuments;
  readonly tables: Readonly<Partial<Record<TableName, RestRoute>>>;
  readonly errors: ErrorWords;
}

/** `{run}` and `{instance}` in a path are the ids, percent-encoded. */
export interface RestRequest {
  readonly path: string;
  readonly method: "GET" | "POST";
  /** Names of query parameters (GET) or members of a JSON body (POST); undefined where there is none. An id that the path holds is not sent again. */
  readonly parameters: {
    readonly instance: string | undefined;
    readonly run: string | undefined;
    readonly from: string | undefined;
    readonly to: string | undefined;
    readonly limit: string | undefined;
    readonly filters: Readonly<Partial<Record<FilterName, string>>>;
    /** Sent as they are, such as `format: json`. */
    readonly fixed: Readonly<Record<string, string>>;
  };
  /** How bounds are written. `to` is exclusive on our side: an inclusive one is sent a unit less. */
  readonly times: {
    readonly unit: TimeUnit;
    /** With RFC 3339, how finely the gateway reads it; without it to the nanosecond. */
    readonly step?: CountUnit | undefined;
    readonly from: "inclusive" | "exclusive";
    readonly to: "inclusive" | "exclusive";
  };
}

export interface RestRoute extends RestRequest {
  readonly pages: Pages;
  readonly rows: RowForm;
  readonly order: "ascending" | "descending" | "none";
  /** Largest limit that the gateway takes; undefined where none is known. */
  readonly largestLimit: number | undefined;
}

/** Where rows are in an answer. */
export type RowForm =
  | { readonly form: "lines"; readonly mediaTypes: readonly string[] }
  | { readonly form: "array"; readonly path: readonly string[]; readonly mediaTypes: readonly string[] };

/** Where a value that pages go by stands in an answer: the next page's cursor or address, or the number of all rows. */
export type NextPlace = { readonly body: readonly string[] } | { readonly header: string };

export type Pages =
  | { readonly by: "none" }
  | ({ readonly by: "cursor"; readonly send: string; readonly next: NextPlace } & Announced)
  /** The whole address of the next page, which has to be of the same origin. */
  | ({ readonly by: "address"; readonly next: NextPlace } & Announced)
  /** RFC 8288: `Link: <…>; rel="next"`. */
  | ({ readonly by: "link" } & Announced)
  | ({ readonly by: "offset"; readonly send: string; readonly size: string } & Announced)
  | ({
      readonly by: "number";
      readonly send: string;
      readonly size: string;
      readonly first: 0 | 1;
    } & Announced);

/** Where pages say how many rows they are in all; undefined where nothing says it. */
interface Announced {
  readonly total?: NextPlace | undefined;
}

/**
 * Each document's request over one transport, and where in the JSON of its answer the values are. Undefined: the gateway has
 * none. A list that `isWhole` is not followed, whatever its answer says of more.
 */
export interface DescribedDocuments<Request> {
  readonly instances:
    | (Request & {
        readonly list: readonly string[];
        readonly id: readonly string[];
        readonly runs: readonly string[] | undefined;
        readonly isWhole?: boolean | undefined;
      })
    | undefined;
  readonly runs:
    | (Request & RunFields & { readonly list: readonly string[]; readonly isWhole?: boolean | undefined })
    | undefined;
  readonly facts: (Request & FactFields) | undefined;
  readonly summary: Request | undefined;
  readonly resources: Request | undefined;
  readonly instance: (Request & { readonly currentRun: readonly string[] | undefined }) | undefined;
  /** Instances and runs that nothing lists, by name. */
  readonly given: Readonly<Record<string, readonly string[]>>;
}

export type RestDocuments = DescribedDocuments<RestRequest>;

export interface RunFields {
  readonly id: readonly string[];
  readonly started: readonly string[] | undefined;
  readonly ended: readonly string[] | undefined;
  readonly unit: TimeUnit;
  readonly status: readonly string[] | undefined;
  /** The gateway's words for RUNNING, FINISHED, FAILED. */
  readonly words: Readonly<Record<string, "RUNNING" | "FINISHED" | "FAILED">>;
  readonly final: readonly string[] | undefined;
  readonly storageVersion: readonly string[] | undefined;
}

export interface FactFields {
  /** The list of tables' facts; undefined where the answer is of one table, named in the request by `table`. */
  readonly list: readonly string[] | undefined;
  /** Where an entry names its table, and the gateway's names for ours. */
  readonly table: readonly string[];
  readonly tableWords: Readonly<Record<string, TableName>>;
  /** Request parameter for one table; undefined where all come. */
  readonly tableParameter: string | undefined;
  readonly rows: readonly string[];
  readonly first: readonly string[] | undefined;
  readonly last: readonly string[] | undefined;
  readonly unit: TimeUnit;
  readonly final: readonly string[] | undefined;
  /** False where the facts are of the whole run whatever bounds are asked for. */
  readonly heedBounds: boolean;
}

/** What an error answer means: by the code at this path; what is not there goes by the status. */
export interface ErrorWords {
  readonly code: readonly string[];
  readonly codes: Readonly<Record<string, ErrorCode>>;
}

/** The part of a profile about RPC: checked against its descriptors, nothing left to guess. */
export interface RpcProfile {
  readonly protocol: "connect" | "grpc";
  /** The descriptor set, absolute. */
  readonly descriptors: string;
  /** Path that methods are below, in place of that of the gateway's address. */
  readonly base: string | undefined;
  readonly documents: RpcDocuments;
  readonly tables: Readonly<Partial<Record<TableName, RpcRoute>>>;
  /** What the codes of RPC mean, by their names as Connect writes them, where they mean something else than usual. */
  readonly codes: Readonly<Record<string, ErrorCode>>;
  /** As a profile would have it. */
  readonly document: object;
}

/** Where a value stands in a request's message. */
export type RequestPlace = readonly string[] | undefined;

export interface RpcRequest {
  readonly method: DescMethodUnary;
  readonly places: {
    readonly instance: RequestPlace;
    readonly run: RequestPlace;
    readonly from: RequestPlace;
    readonly to: RequestPlace;
    /** Most rows of a page. */
    readonly limit: RequestPlace;
    /** The token of the page before. */
    readonly token: RequestPlace;
    readonly filters: Readonly<Partial<Record<FilterName, readonly string[]>>>;
  };
  /** Sent as it is: a part of the message as protobuf JSON. */
  readonly fixed: JsonObject;
  /** A Timestamp is RFC 3339 here. */
  readonly times: RestRequest["times"];
}

export interface RpcRoute extends RpcRequest {
  /** The message of a row. */
  readonly row: DescMessage;
  readonly layout: PageLayout;
  /** Where rows and the token of the next page stand in the answer's message, by name. */
  readonly answer: { readonly rows: readonly string[]; readonly next: readonly string[] | undefined };
  /** How rows become canonical; undefined where they come so. */
  readonly map: RowMap | undefined;
  /** Largest page that the gateway takes; undefined where none is known. */
  readonly largestLimit: number | undefined;
}

export type RpcDocuments = DescribedDocuments<RpcRequest>;
