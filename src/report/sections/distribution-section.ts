import { returnsChart } from "../charts/returns-chart.ts";
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
import { groupOf, isSameKey, sectionOf } from "./reported.ts";

const names = [
  ...["var", "var_normal", "cvar", "skewness", "kurtosis", "tail_ratio", "best_day", "worst_day"],
  ...["best_month", "worst_month", "best_year", "worst_year"],
];

/** How the returns of the sessions are distributed. */
export const distributionSection: PageSection = {
  id: "distribution",
  title: "Distribution of returns",
  render: async ({ reported, panels, drawings }: PageParts) => {
    const { options, runs } = reported;
    const absent = absences(runs, "performance");
    const body = await overPanels(
      panels.filter(({ members }) => returnsOf(members).length > 0),
      async ({ members }) => {
        const own = returnsOf(members);
        const isOnly = runs.length === 1;
        const value = (member: (typeof own)[number] | undefined, name: string) => {
          if (member === undefined) return null;
          const told = groupOf(member.run.told, "performance", member.key)?.figures[name]?.value ?? null;
          return told === null ? null : Number(told);
        };
        const chart = await returnsChart({
          period: periodOf(options.session),
          runs: runs.map((run) => {
            const member = own.find((each) => each.run === run);
            return {
              ...chartRun(run),
              returns: member?.returns ?? new Float64Array(),
              valueAtRisk: {
                level: 0.05,
                historical: value(member, "var"),
                normal: value(member, "var_normal"),
                conditional: value(member, "cvar"),
              },
            };
          }),
          note: `Returns by ${sectionOf(own[0]!.run.told, "performance")?.conventions ?? "sessions"}.`,
        });
        const columns = own.map(({ run, key }) =>
          runColumn(run, isOnly, groupOf(run.told, "performance", key)?.figures ?? {}),
        );
        return html`${drawings.add(chart)}${figuresTable("Figures of the distribution", columns, names)}`;
      },
    );
    return body.text === "" ? empty(absent[0] ?? "no return") : body;
  },
};

function returnsOf(members: PageParts["panels"][number]["members"]) {
  return members.flatMap(({ run, key }) => {
    const curve = run.read.curves.find((own) => isSameKey(own, key));
    return curve === undefined || curve.returns.length === 0 ? [] : [{ run, key, returns: curve.returns }];
  });
}

/** The period of one return. */
export function periodOf(session: string): string {
  return session === "bars" ? "equity row" : "session";
}
