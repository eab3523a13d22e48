import { RunvaultError } from "../../../../model/error.ts";
import type { TableName } from "../../../../model/profile/table.ts";
import { type Asker, NoMoreRequests, type Told } from "../../check/asker.ts";
import { refusesLimit, rowLimits } from "../draft-bounds.ts";
import type { AskablePath } from "./known-paths.ts";

/** Ids to use in a request. */
export interface SampleIds {
  readonly instance?: string;
  readonly run?: string;
}

const noNames = { from: undefined, to: undefined, filters: {}, fixed: {} } as const;
const accepted = "application/json, application/x-ndjson";

/** After these errors another path may work; after others, such as an unreachable gateway, none will. */
const passable: ReadonlySet<string> = new Set(["route_not_found", "refused"]);

export interface SampleAnswer {
  readonly told: Told;
  /** The largest accepted limit, if a larger one was refused. */
  readonly takenLimit: number | undefined;
}

/** Requests paths that may exist; those that do not give undefined. */
export class SampleAsker {
  readonly #asker: Asker;

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** A few rows of a table; fewer if the gateway refuses so many. */
  async rows(at: AskablePath, ids: SampleIds, table: TableName): Promise<SampleAnswer | undefined> {
    const most = at.names.limit === undefined ? undefined : at.known.about?.[at.names.limit]?.maximum;
    let first: Told | undefined;
    for (const limit of most === undefined || most < 1
      ? rowLimits
      : [Math.min(rowLimits[0]!, Math.floor(most))]) {
      const told = await this.ask(at, ids, { limit, table });
      if (told?.status === 200) return { told, takenLimit: first === undefined ? undefined : limit };
      first ??= told;
      if (at.names.limit === undefined || !refusesLimit(told?.status)) break;
    }
    return first && { told: first, takenLimit: undefined };
  }

  /** The answer, with any status; undefined if there is none or no requests are left. Throws if a key is required. */
  async ask(
    { path, names }: AskablePath,
    ids: SampleIds,
    { limit, table }: { readonly limit?: number; readonly table?: TableName } = {},
  ): Promise<Told | undefined> {
    const place = { ...ids, ...(table === undefined ? {} : { table }) };
    let told: Told;
    try {
      told = await this.#asker.ask(
        {
          path,
          method: "GET",
          parameters: { ...noNames, instance: names.instance, run: names.run, limit: names.limit },
          times: { unit: "ns", from: "inclusive", to: "exclusive" },
        },
        { ...ids, ...(limit === undefined ? {} : { limit }) },
        accepted,
        place,
      );
    } catch (thrown) {
      if (thrown instanceof NoMoreRequests) return undefined;
      if (thrown instanceof RunvaultError && passable.has(thrown.code)) return undefined;
      throw thrown;
    }
    if (told.status !== 401) return told;
    throw new RunvaultError("unauthenticated", `${told.request}: the gateway answered 401`, {
      place,
      status: 401,
      hint: this.#asker.unauthenticatedHint,
    });
  }
}
