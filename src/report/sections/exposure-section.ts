import { exposureChart } from "../charts/exposure-chart.ts";
import { figuresTable } from "../page/figures-table.ts";
import { html } from "../page/html.ts";
import {
  absences,
  chartRun,
  empty,
  overPanels,
  type PageParts,
  type PageSection,
  runColumn,
} from "./page-section.ts";
import { groupOf, isSameKey } from "./reported.ts";

const names = ["time_in_market", "exposure_gross", "exposure_net", "turnover"];

/** The value of the positions over time. */
export const exposureSection: PageSection = {
  id: "exposure",
  title: "Exposure",
  render: async ({ reported: { runs }, panels, drawings }: PageParts) => {
    const body = await overPanels(
      panels.filter(({ members }) => exposuresOf(members).length > 0),
      async ({ members, currency }) => {
        const own = exposuresOf(members);
        const isOnly = runs.length === 1;
        const chart = await exposureChart({
          unit: currency,
          runs: runs.map((run) => ({
            ...chartRun(run),
            ...(own.find((each) => each.run === run)?.exposure ?? noExposure),
          })),
          note: "From fills, at the latest close or fill; each step is the mean over its stretch of time.",
        });
        const columns = own.map(({ run, key }) =>
          runColumn(run, isOnly, groupOf(run.told, "trades", key)?.figures ?? {}),
        );
        return html`${drawings.add(chart)}${figuresTable("Figures of the exposure", columns, names)}`;
      },
    );
    return body.text === "" ? empty(absences(runs, "trades")[0] ?? "no fills") : body;
  },
};

const none = new Float64Array();
const noExposure = { times: none, gross: none, net: none };

function exposuresOf(members: PageParts["panels"][number]["members"]) {
  return members.flatMap(({ run, key }) => {
    const exposure = run.read.trades.find((own) => isSameKey(own, key))?.exposure ?? null;
    return exposure === null ? [] : [{ run, key, exposure }];
  });
}
