import { countText } from "../../model/text/plural.ts";
import { rollingChart } from "../charts/rolling-chart.ts";
import { periodOf } from "./distribution-section.ts";
import { absences, chartRun, empty, overPanels, type PageParts, type PageSection } from "./page-section.ts";
import { isSameKey, sectionOf } from "./reported.ts";

/** Sharpe ratio and volatility over windows of returns. */
export const rollingSection: PageSection = {
  id: "rolling",
  title: "Rolling Sharpe ratio and volatility",
  render: async ({ reported: { runs, options }, panels, drawings }: PageParts) => {
    const windows = runs.flatMap(({ read }) => read.window ?? []);
    // several runs without the option use the shortest window, so that all are drawn with the same
    const window = options.window ?? (windows.length === 0 ? null : Math.min(...windows));
    const drawn = panels.filter(({ members }) => rollingOf(members, window).length > 0);
    const [absent] = absences(runs, "performance");
    if (absent !== undefined && drawn.length === 0) return empty(absent);
    if (window === null)
      return empty("too few returns for a rolling window; with --session bars, each equity row is a return");
    if (drawn.length === 0) return empty(`fewer than ${window} returns, the window of --window`);
    return await overPanels(drawn, async ({ members }) => {
      const own = rollingOf(members, window);
      const chart = await rollingChart({
        window,
        period: periodOf(options.session),
        runs: runs.map((run) => ({
          ...chartRun(run),
          ...(own.find((each) => each.run === run)?.rolling ?? noRolling),
        })),
        note: `Windows of ${countText(window, "return")}, ${sectionOf(runs[0]!.told, "performance")?.conventions ?? ""}.`,
      });
      return drawings.add(chart);
    });
  },
};

const none = new Float64Array();
const noRolling = { times: none, sharpe: none, volatility: none };

function rollingOf(members: PageParts["panels"][number]["members"], window: number | null) {
  return members.flatMap(({ run, key }) => {
    const rolling =
      run.read.window === window ? run.read.rolling.find((own) => isSameKey(own, key)) : undefined;
    if (rolling === undefined || rolling.times.length === 0) return [];
    const { times, sharpe, volatility } = rolling;
    return [{ run, rolling: { times, sharpe, volatility } }];
  });
}
