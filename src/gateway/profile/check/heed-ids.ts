import { tables } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { countText } from "../../../model/text/plural.ts";
import { refusalText } from "./asker.ts";
import type { SampleRow } from "./sample.ts";
import {
  askRows,
  heed,
  isGiven,
  nobody,
  type Page,
  type TableProbe,
  tellHeed,
  tellUnchecked,
} from "./table-rows.ts";

/** Requests an unknown run, an unknown instance, and another run. */
export async function checkIds(
  probe: TableProbe,
  sample: readonly SampleRow[],
  other: RunRef | undefined,
): Promise<void> {
  const { route, map } = probe;
  const { run, instance } = route.parameters;
  const takesRun = run !== undefined || route.path.includes("{run}");
  const takesInstance = instance !== undefined || route.path.includes("{instance}");
  await heed(probe, "unknown run", "parameters.run", async () => {
    const page = await askRows(probe, { run: nobody });
    const name = takesRun ? `\`${run ?? "{run}"}\`` : "no parameter";
    tellNobody(probe, "unknown run", page, "parameters.run", {
      hint: takesRun
        ? `The gateway ignores ${name}: look up the name of the parameter for the run. Otherwise every run would get the rows of all runs.`
        : "The profile does not send the run: name its parameter under `parameters`, or put {run} into the path.",
    });
  });
  if (takesInstance) {
    const names = map.columns.instance_id?.kind === "field";
    await heed(probe, "unknown instance", "parameters.instance", async () => {
      const page = await askRows(probe, { instance: nobody });
      if (isGiven(page) && page.rows.length > 0 && names) {
        return tellHeed(
          probe,
          "unknown instance",
          `returned ${countText(page.rows.length, "row")} that name their real instance: the run's id is enough`,
        );
      }
      tellNobody(probe, "unknown instance", page, "parameters.instance", {
        hint: `The gateway ignores \`${instance ?? "{instance}"}\`, and rows do not name their instance: look up the parameter's name. If run ids are unique across instances, remove the parameter.`,
      });
    });
  }
  await checkOther(probe, sample, other);
}

function tellNobody(
  probe: TableProbe,
  what: string,
  page: Page,
  at: string,
  { hint }: { readonly hint: string },
): void {
  const { told, rows } = page;
  if (isGiven(page) && rows.length > 0) {
    tellHeed(probe, what, `returned ${countText(rows.length, "row")}`, { kind: "not_filtered", at, hint });
  } else if (told.status >= 500) tellUnchecked(probe, what, `the gateway answered with ${refusalText(told)}`);
  else tellHeed(probe, what, isGiven(page) ? "returned no rows" : `answered with ${refusalText(told)}`);
}

async function checkOther(
  probe: TableProbe,
  sample: readonly SampleRow[],
  other: RunRef | undefined,
): Promise<void> {
  const what = "another run";
  if (other === undefined) return tellUnchecked(probe, what, "no other run is known");
  await heed(probe, what, "parameters.run", async () => {
    const page = await askRows(probe, { run: other.runId, instance: other.instanceId });
    const name = `${other.instanceId}/${other.runId}`;
    if (!isGiven(page)) return tellUnchecked(probe, what, `${name} failed: ${refusalText(page.told)}`);
    if (page.rows.length === 0) return tellUnchecked(probe, what, `${name} has no rows of this table`);
    const own = new Set(sample.map(({ node }) => node.text));
    const same = page.rows.filter(({ node }) => own.has(node.text)).length;
    if (same > 0) {
      return tellHeed(
        probe,
        what,
        `${name} returned ${same === page.rows.length ? "the same rows" : `${same} of the same rows`}`,
        {
          kind: "not_filtered",
          at: "parameters.run",
          hint: "The gateway cannot tell the two runs apart from this request: look up the names of the parameters for run and instance.",
        },
      );
    }
    tellHeed(probe, what, `${name} returned ${countText(page.rows.length, "row")}, all different`);
  });
}

/** Requests a value that no row has, filter by filter, while requests are left. */
export async function checkFilters(probe: TableProbe): Promise<void> {
  const { route, table } = probe;
  const named = Object.keys(route.parameters.filters);
  const known = tables.find(({ name }) => name === table.name)!.filters;
  for (const filter of known.filter((one) => named.includes(one))) {
    const what = `filter ${filter}`;
    await heed(probe, what, `parameters.filters.${filter}`, async () => {
      const page = await askRows(probe, { filters: { [filter]: nobody } });
      const name = route.parameters.filters[filter];
      if (!isGiven(page) || page.rows.length === 0) {
        return tellHeed(probe, what, `${name}=${nobody} returned no rows`);
      }
      tellHeed(probe, what, `${name}=${nobody} returned ${countText(page.rows.length, "row")}`, {
        kind: "not_heeded",
        at: `parameters.filters.${filter}`,
        hint: `The gateway ignores \`${name}\`: look up its name, or remove the filter.`,
      });
    });
  }
}
