import type { DescMessage, DescMethodUnary, JsonObject } from "@bufbuild/protobuf";
import type { ErrorCode } from "../../model/error.ts";
import type { CountUnit, RowMap, TimeUnit } from "../../model/profile/row-map.ts";
import type { FilterName, TableName } from "../../model/profile/table.ts";
import type { PageLayout } from "../../row/wire/page-index.ts";

/** How a gateway differs: its profile, checked and compiled, with all defaults filled in. */
export interface Profile {
  readonly name: string;
  /** The file as it was named; `default` for the built-in contract. */
  readonly file: string;
  /** Headers of every request; values are read when the gateway is opened. */
  readonly headers: readonly ProfileSecret[];
  /** Secret query parameters, which the profile must allow expressly; masked wherever an address is shown. */
  readonly keys: readonly ProfileSecret[];
  /** Undefined if the gateway has no REST. */
  readonly rest: RestProfile | undefined;
  /** Undefined if it has no RPC. */
  readonly rpc: RpcProfile | undefined;
  /** Maps of described tables; undefined if a table's rows are already canonical. */
  readonly maps: Readonly<Partial<Record<TableName, RowMap>>>;
  /** Tables that the gateway does not have, according to the profile. */
  readonly none: readonly TableName[];
  /** Tables with a route in the profile. No other table is requested. */
  readonly described: readonly TableName[];
}

export interface ProfileSecret {
  /** Name of the header or parameter. */
  readonly name: string;
  /** An environment variable, or a file's absolute path. */
  readonly from: { readonly env: string } | { readonly file: string };
}

export interface RestProfile {
  /** Prefix of every path, after the gateway's address; empty, or begins with a slash. */
  readonly base: string;
  readonly documents: RestDocuments;
  readonly tables: Readonly<Partial<Record<TableName, RestRoute>>>;
  readonly errors: ErrorWords;
}

/** `{run}` and `{instance}` in a path are the ids, percent-encoded. */
export interface RestRequest {
  readonly path: string;
  readonly method: "GET" | "POST";
  /**
   * Names of query parameters (GET) or members of a JSON body (POST); undefined if not sent. An id in the path is not
   * sent again.
   */
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
  /** How bounds are written. `to` is exclusive in runvault: if the gateway's is inclusive, one unit less is sent. */
  readonly times: {
    readonly unit: TimeUnit;
    /** The precision with which the gateway reads RFC 3339; default: nanoseconds. */
    readonly step?: CountUnit | undefined;
    readonly from: "inclusive" | "exclusive";
    readonly to: "inclusive" | "exclusive";
  };
}

export interface RestRoute extends RestRequest {
  readonly pages: Pages;
  readonly rows: RowForm;
  readonly order: "ascending" | "descending" | "none";
  /** The largest limit that the gateway accepts; undefined if unknown. */
  readonly largestLimit: number | undefined;
}

/** Where rows are in an answer. */
export type RowForm =
  | { readonly form: "lines"; readonly mediaTypes: readonly string[] }
  | { readonly form: "array"; readonly path: readonly string[]; readonly mediaTypes: readonly string[] };

/** Where an answer has a value for paging: the next page's cursor or address, or the total number of rows. */
export type NextPlace = { readonly body: readonly string[] } | { readonly header: string };

export type Pages =
  | { readonly by: "none" }
  | ({ readonly by: "cursor"; readonly send: string; readonly next: NextPlace } & Announced)
  /** The full address of the next page, which must have the same origin. */
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

/** Where pages give the total number of rows; undefined if they do not. */
interface Announced {
  readonly total?: NextPlace | undefined;
}

/**
 * Each document's request over one transport, and where its values are in the JSON; undefined if the gateway has none.
 * A list that `isWhole` is never followed.
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
  /** Instances and their runs, if the gateway does not list them. */
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
  /** The list of tables' facts; undefined if the answer is about one table, named in the request by `table`. */
  readonly list: readonly string[] | undefined;
  /** Where an entry names its table, and what the gateway calls runvault's tables. */
  readonly table: readonly string[];
  readonly tableWords: Readonly<Record<string, TableName>>;
  /** The request parameter that selects one table; undefined if all come at once. */
  readonly tableParameter: string | undefined;
  readonly rows: readonly string[];
  readonly first: readonly string[] | undefined;
  readonly last: readonly string[] | undefined;
  readonly unit: TimeUnit;
  readonly final: readonly string[] | undefined;
  /** False if the facts are always about the whole run. */
  readonly heedBounds: boolean;
}

/** Meanings of errors by the code at this path; other errors are understood by their HTTP status. */
export interface ErrorWords {
  readonly code: readonly string[];
  readonly codes: Readonly<Record<string, ErrorCode>>;
}

/** A profile's RPC part, checked against its descriptors, with all defaults filled in. */
export interface RpcProfile {
  readonly protocol: "connect" | "grpc";
  /** Absolute path of the descriptor set. */
  readonly descriptors: string;
  /** Path below which the methods are, instead of the path in the gateway's address. */
  readonly base: string | undefined;
  readonly documents: RpcDocuments;
  readonly tables: Readonly<Partial<Record<TableName, RpcRoute>>>;
  /** Meanings of RPC codes that differ from the usual, by Connect's names. */
  readonly codes: Readonly<Record<string, ErrorCode>>;
  /** The same in the form of a profile's file. */
  readonly document: object;
}

/** Where a value goes in a request's message. */
export type RequestPlace = readonly string[] | undefined;

export interface RpcRequest {
  readonly method: DescMethodUnary;
  readonly places: {
    readonly instance: RequestPlace;
    readonly run: RequestPlace;
    readonly from: RequestPlace;
    readonly to: RequestPlace;
    /** The largest number of rows in a page. */
    readonly limit: RequestPlace;
    /** The token of the previous page. */
    readonly token: RequestPlace;
    readonly filters: Readonly<Partial<Record<FilterName, readonly string[]>>>;
  };
  /** Sent as it is: a part of the message in protobuf JSON. */
  readonly fixed: JsonObject;
  /** Timestamps count as RFC 3339. */
  readonly times: RestRequest["times"];
}

export interface RpcRoute extends RpcRequest {
  /** The message of a row. */
  readonly row: DescMessage;
  readonly layout: PageLayout;
  /** Paths of the rows and of the next page's token in the answer's message. */
  readonly answer: { readonly rows: readonly string[]; readonly next: readonly string[] | undefined };
  /** How rows become canonical; undefined if they already are. */
  readonly map: RowMap | undefined;
  /** Largest page that the gateway accepts; undefined if unknown. */
  readonly largestLimit: number | undefined;
}

export type RpcDocuments = DescribedDocuments<RpcRequest>;
