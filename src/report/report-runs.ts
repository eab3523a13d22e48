import { type MeasureOptions, measureRuns } from "../analytics/metrics/measure-runs.ts";
import type { Archive } from "../archive/archive.ts";
import type { Manifest } from "../archive/manifest/manifest.ts";
import { RunvaultError } from "../model/error.ts";
import { formatRun } from "../model/run-argument.ts";
import { countText } from "../model/text/plural.ts";
import type { Chart } from "./charts/chart.ts";
import { Drawings } from "./page/drawings.ts";
import { html } from "./page/html.ts";
import { pageText } from "./page/page.ts";
import { previousRun } from "./read/previous-run.ts";
import { type RunRead, readRun } from "./read/read-run.ts";
import { reconciledRun } from "./read/reconciled.ts";
import { headline } from "./sections/headline.ts";
import { pageSections } from "./sections/page-sections.ts";
import { panelsOf, type Reported } from "./sections/reported.ts";
import { runCard } from "./sections/run-card.ts";

export interface ReportOptions extends Omit<MeasureOptions, "onRun"> {
  /** When and by what the page was made: its only line that does not depend on the archive and the options. */
  readonly made: string;
  /** Whether books are reconciled; if not, the page says so. */
  readonly reconcile: boolean;
}

/** A page, and the charts on it. */
export interface Report {
  readonly html: string;
  readonly charts: readonly Chart[];
}

/** Most runs whose colours are easy to tell apart. */
const mostRuns = 6;

/**
 * The page of one run, or of several side by side. Throws what `measureRuns` throws, and `invalid_argument` for more runs
 * than have colours.
 */
export async function reportRuns(
  archive: Archive,
  manifests: readonly Manifest[],
  { made, reconcile, ...options }: ReportOptions,
): Promise<Report> {
  if (manifests.length > mostRuns) {
    throw new RunvaultError("invalid_argument", `${manifests.length} runs are too many for one page`, {
      hint: `A report compares ${mostRuns} runs at most; \`runvault metrics\` takes any number.`,
    });
  }
  const read: RunRead[] = [];
  const document = await measureRuns(archive, manifests, {
    ...options,
    onRun: async (measured, told) => {
      read.push(await readRun(measured, told));
    },
  });
  const [first] = manifests;
  const reported: Reported = {
    runs: [],
    previous: manifests.length === 1 ? await previousRun(archive, first!, options) : null,
    options,
    toldOptions: document.options,
  };
  const runs: Reported["runs"][number][] = [];
  for (const [index, told] of document.runs.entries()) {
    const ref = { instanceId: told.instance, runId: told.run };
    runs.push({
      name: formatRun(ref),
      label: `[${index + 1}]`,
      number: index + 1,
      told,
      read: read[index]!,
      reconciled: reconcile
        ? await reconciledRun(archive, ref, options)
        : `--no-reconcile was given; \`runvault reconcile ${formatRun(ref)}\` does it`,
    });
  }
  return await draw({ ...reported, runs }, made);
}

async function draw(reported: Reported, made: string): Promise<Report> {
  const { runs } = reported;
  const panels = panelsOf(runs);
  const drawings = new Drawings();
  const head = html`${runCard(reported)}${await headline(reported, panels)}`;
  const sections = [];
  for (const { id, title, render } of pageSections) {
    sections.push({ id, title, body: await render({ reported, panels, drawings }) });
  }
  const names = runs.map(({ name }) => name);
  const title = names.length === 1 ? names[0]! : `${countText(names.length, "run")}: ${names.join(", ")}`;
  return { html: pageText({ title: `${title} · runvault`, head, sections, made }), charts: drawings.charts };
}
