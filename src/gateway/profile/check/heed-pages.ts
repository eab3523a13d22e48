import { agreeing, countText } from "../../../model/text/plural.ts";
import type { Pages } from "../profile.ts";
import { refusalText } from "./asker.ts";
import { fieldsAround, nextOf, placeText, shortText, signOfNext, valueAt } from "./row-page.ts";
import { missingFrom, orderOf, type SampleRow } from "./sample.ts";
import {
  askRows,
  isGiven,
  limitName,
  type Page,
  pageOf,
  type TableProbe,
  tellHeed,
  tellUnchecked,
} from "./table-rows.ts";

/** Requests a few rows and the page after them, and joins the two. */
export async function checkPages(probe: TableProbe, sample: Page): Promise<void> {
  const { route } = probe;
  const name = limitName(route);
  const few = Math.min(3, Math.floor(sample.rows.length / 2));
  if (name !== undefined && few < 1) tellUnchecked(probe, "limit", "the table has too few rows");
  let first = sample;
  if (name !== undefined && few >= 1) {
    first = await askRows(probe, { limit: few });
    if (!tellLimit(probe, name, few, first)) return;
  }
  if (route.pages.by === "none") return tellNoPages(probe, sample);
  tellTotal(probe, route.pages, sample);
  await checkJoin(probe, route.pages, sample, first, few);
}

/** Checks that the answer is a first page: not refused, and within the limit. */
function tellLimit(probe: TableProbe, name: string, few: number, page: Page): boolean {
  const at =
    probe.route.pages.by === "none" || probe.route.parameters.limit === name
      ? "parameters.limit"
      : "pages.size";
  if (!isGiven(page)) {
    tellHeed(probe, "limit", `${name}=${few} failed: ${refusalText(page.told)}`, {
      kind: "not_heeded",
      at,
      hint: "The gateway refuses this limit: look up the parameter's name and the values that it accepts.",
    });
    return false;
  }
  if (page.rows.length > few) {
    tellHeed(probe, "limit", `${name}=${few} returned ${countText(page.rows.length, "row")}`, {
      kind: "not_heeded",
      at,
      hint: `The gateway ignores \`${name}\`: look up its name. If there is no such parameter, remove it.`,
    });
    return false;
  }
  tellHeed(probe, "limit", `${name}=${few} returned ${countText(page.rows.length, "row")}`);
  return true;
}

/** Reports an answer that announces a next page although the profile has no pages. */
function tellNoPages(probe: TableProbe, { told, around }: Page): void {
  const sign = signOfNext(told, around, probe.route);
  if (sign === undefined) return;
  const { where, value, by } = sign;
  const so =
    probe.route.rpc !== undefined
      ? `pages: { send: …, next: ${where} }`
      : by === "link"
        ? "pages: { by: link }"
        : by === "address"
          ? `pages: { by: address, next: ${where} }`
          : `pages: { by: cursor, send: …, next: ${where} }`;
  tellHeed(
    probe,
    "pages",
    `the profile has no pages, but the answer has a next page in ${where}: ${shortText(value)}`,
    {
      kind: "page_kind",
      at: "pages",
      hint: `Write \`${so}\`.`,
    },
  );
}

function tellTotal(probe: TableProbe, pages: Pages, sample: Page): void {
  if (pages.by === "none" || pages.total === undefined) return;
  const total = valueAt(pages.total, sample.told, sample.around);
  const what = "total";
  if (total !== undefined && /^\d+$/.test(total) && Number(total) >= sample.rows.length) {
    tellHeed(probe, what, `${placeText(pages.total)} says ${total}`);
    return;
  }
  tellHeed(
    probe,
    what,
    total === undefined
      ? `there is no total at ${placeText(pages.total)}`
      : `${placeText(pages.total)} says ${shortText(total)}, but ${countText(sample.rows.length, "row")} came`,
    { kind: "page_kind", at: "pages.total", hint: aroundHint(probe, sample) },
  );
}

function aroundHint({ route }: TableProbe, { told, around }: Page): string {
  const fields = fieldsAround(around, route).map(([name, node]) => `${name} (${shortText(node.text, 24)})`);
  const sign = signOfNext(told, around, route);
  const headers = Object.keys(told.headers).filter((name) => /^x-|^link$|total|next|cursor/.test(name));
  return [
    ...(sign === undefined ? [] : [`Did you mean ${sign.where}?`]),
    fields.length === 0
      ? "The answer has no fields other than the rows."
      : `Other fields in the answer: ${fields.join(", ")}.`,
    ...(headers.length === 0 ? [] : [`Possible headers: ${headers.join(", ")}.`]),
  ].join(" ");
}

async function checkJoin(
  probe: TableProbe,
  pages: Exclude<Pages, { readonly by: "none" }>,
  sample: Page,
  first: Page,
  few: number,
): Promise<void> {
  const what = "the next page";
  if (first.rows.length === 0) return tellUnchecked(probe, what, "there are no rows");
  if (pages.by === "offset" || pages.by === "number") {
    if (few < 1) return tellUnchecked(probe, what, "the table has too few rows");
    return await checkCounted(probe, pages, sample, first, few);
  }
  const next = nextOf(pages, first.told, first.around);
  if (next === undefined) {
    if (first.rows.length >= sample.rows.length && first !== sample) {
      return tellUnchecked(probe, what, "the table has no second page");
    }
    if (first === sample && signOfNext(first.told, first.around, probe.route) === undefined) {
      return tellUnchecked(probe, what, "the answer names no next page, and may be complete");
    }
    const place = pages.by === "link" ? 'a header Link with rel="next"' : placeText(pages.next);
    return tellHeed(
      probe,
      what,
      `${countText(first.rows.length, "row")} came and there are more, but ${place} names no next page`,
      {
        kind: "page_kind",
        at: pages.by === "link" ? "pages" : "pages.next",
        hint: aroundHint(probe, first),
      },
    );
  }
  const second =
    pages.by === "cursor"
      ? await askRows(probe, { ...(first === sample ? {} : { limit: few }), more: [[pages.send, next]] })
      : pageOf(
          probe,
          await probe.asker.follow(next, first.told, probe.route.rows.mediaTypes.join(", "), {
            instance: probe.run.instanceId,
            run: probe.run.runId,
            table: probe.table.name,
          }),
        );
  const again = nextOf(pages, second.told, second.around);
  const sent = pages.by === "cursor" ? `${pages.send}=${shortText(next, 24)}` : shortText(next);
  tellJoin(probe, pages.by === "cursor" ? "pages.send" : "pages", {
    what,
    sent,
    sample: sample.rows,
    first,
    second,
    same: again === next,
    goesOn: again !== undefined,
    hint:
      pages.by === "cursor"
        ? `The gateway ignores \`${pages.send}\`: look up the parameter that takes the cursor.`
        : "The gateway's next address leads back to the first page: look up how it pages.",
  });
}

async function checkCounted(
  probe: TableProbe,
  pages: Extract<Pages, { readonly by: "offset" | "number" }>,
  sample: Page,
  first: Page,
  few: number,
): Promise<void> {
  const what = "the next page";
  const number = pages.by === "offset" ? few : pages.first + 1;
  const second = await askRows(probe, { limit: few, more: [[pages.send, `${number}`]] });
  if (pages.by === "number" && pages.first === 0 && isSame(first, second)) {
    const third = await askRows(probe, { limit: few, more: [[pages.send, "2"]] });
    if (isGiven(third) && third.rows.length > 0 && !isSame(first, third)) {
      tellHeed(probe, what, `${pages.send}=0 and ${pages.send}=1 returned the same page`, {
        kind: "page_kind",
        at: "pages.first",
        hint: "The gateway counts pages from 1: write `first: 1`.",
      });
      return;
    }
  }
  tellJoin(probe, "pages.send", {
    what,
    sent: `${pages.send}=${number}`,
    sample: sample.rows,
    first,
    second,
    same: false,
    goesOn: false,
    hint: `The gateway ignores \`${pages.send}\`: look up how it pages.`,
  });
  if (pages.by !== "number" || pages.first === 0) return;
  const before = await askRows(probe, { limit: few, more: [[pages.send, "0"]] });
  const extra = missingFrom(before.rows, sample.rows).length;
  if (isGiven(before) && extra > 0) {
    tellHeed(
      probe,
      "the first page",
      `${pages.send}=0 returned ${countText(extra, "row")} that page 1 lacks`,
      {
        kind: "page_kind",
        at: "pages.first",
        hint: "The gateway counts pages from 0: write `first: 0`.",
      },
    );
  }
}

/** Whether the second of two pages has rows, and only rows that the first begins with. */
function isSame(page: Page, again: Page): boolean {
  const texts = page.rows.map(({ node }) => node.text);
  return again.rows.length > 0 && again.rows.every(({ node }, index) => node.text === texts[index]);
}

interface Joined {
  readonly what: string;
  readonly sent: string;
  readonly sample: readonly SampleRow[];
  readonly first: Page;
  readonly second: Page;
  /** Whether the second page names itself as the next. */
  readonly same: boolean;
  /** Whether it names a next page. */
  readonly goesOn: boolean;
  /** What to do if the first page came again. */
  readonly hint: string;
}

function tellJoin(probe: TableProbe, at: string, joined: Joined): void {
  const { what, sent, second } = joined;
  const fault = joinFault(probe, joined);
  if (fault === undefined) {
    const rows = countText(second.rows.length, "row");
    tellHeed(probe, what, `${sent} continues after the first page: ${rows}, no duplicates, no gaps`);
  } else tellHeed(probe, what, fault.told, { kind: "page_join", hint: fault.hint, at });
}

/** What is wrong if two pages are not the beginning of the sample; undefined if no row is duplicate or missing. */
function joinFault(
  { route }: TableProbe,
  { sent, sample, first, second, same, goesOn, hint }: Joined,
): { readonly told: string; readonly hint: string } | undefined {
  if (!isGiven(second)) {
    const status = second.fault?.message ?? refusalText(second.told);
    return { told: `${sent} failed: ${status}`, hint: "Look up how the gateway pages." };
  }
  if (same || isSame(first, second)) return { told: `${sent} returned the first page again`, hint };
  const isPart = first.rows.length < sample.length;
  const all = [...first.rows, ...second.rows];
  // if no smaller page could be requested, the sample is the first page, and the second must only differ
  const edge = (isPart ? all : first.rows).findLast(({ ts }) => ts !== undefined)?.ts;
  // further rows with the last time may be on the next page, and rows with the same time come in any order
  const order = orderOf(sample) ?? route.order;
  const isBefore = ({ ts }: SampleRow) =>
    ts !== undefined &&
    edge !== undefined &&
    ((order === "descending" && ts > edge) || (order === "ascending" && ts < edge));
  const known = sample.filter(isBefore);
  const twice = (isPart ? missingFrom(all.filter(isBefore), known) : second.rows.filter(isBefore)).length;
  if (twice > 0) {
    return {
      told: `${sent} returned ${countText(twice, "row")} that belong to the first page or before it`,
      hint: "Look up how the gateway pages: its pages overlap.",
    };
  }
  const missing = isPart ? missingFrom(known, all).length : 0;
  if (missing === 0) {
    // an empty page that names a next one may be a period without rows
    return isPart && second.rows.length === 0 && !goesOn
      ? {
          told: `${sent} returned no rows, but ${countText(sample.length - first.rows.length, "row")} should follow the first page`,
          hint,
        }
      : undefined;
  }
  return {
    told: `${countText(missing, "row")} ${agreeing(missing, "is", "are")} missing between the first page and ${sent}`,
    hint: "Look up how the gateway pages: there is a gap between its pages.",
  };
}
