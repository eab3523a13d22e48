import type { FactFields, RestRoute } from "../profile.ts";
import type { Finding, ReachableProof } from "./profile-check.ts";

/** What a table's proof can use. */
export interface ProofGround {
  readonly route: RestRoute;
  /** Where the gateway's counts are; undefined if it has none for this table. */
  readonly facts: FactFields | undefined;
  readonly findings: readonly Finding[];
}

const unfit: ReadonlySet<string> = new Set([
  "no_answer",
  "list_path",
  "media_type",
  "not_filtered",
  "page_join",
]);

/** The strongest proof that a table can reach if the rest of the profile is right; see docs/proof.md. */
export function reachableProof({ route, facts, findings }: ProofGround): ReachableProof {
  const fault = findings.find(({ kind }) => unfit.has(kind));
  if (fault !== undefined) return { reach: "none", why: `first correct this: ${fault.message}` };
  const { parameters } = route;
  const isWhole = parameters.from === undefined || parameters.to === undefined;
  const by = pagesText(route);
  if (facts !== undefined) {
    const whole = facts.heedBounds
      ? ""
      : ", but only those of the whole run: a run that is still going on is not counted";
    return { reach: "counted", why: `the gateway counts its rows${whole}${by}` };
  }
  return {
    reach: "exhausted",
    why: `there are no counts: two passes must return the same rows${isWhole ? ", the whole table each time" : ""}${by}`,
  };
}

function pagesText({ pages, parameters }: RestRoute): string {
  switch (pages.by) {
    case "offset":
      return "; pages by offset: each starts one row early to show that no rows have moved";
    case "number":
      return `; pages by number: ${
        parameters.from === undefined || parameters.to === undefined ? "only for finished runs; a" : "a"
      } second pass with another page size must return the same rows`;
    default:
      return "";
  }
}
