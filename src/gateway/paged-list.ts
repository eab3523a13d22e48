import { RunvaultError } from "../model/error.ts";
import type { Listed, ListRest } from "../model/source.ts";
import { type JsonNode, leavesOf } from "./profile/check/json-node.ts";
import { pathText } from "./profile/check/row-page.ts";
import { nextLink } from "./rest/pages/next-page.ts";

/** How to ask for more of a list: by the full address from its answer, or by one more parameter. */
export interface NextPage {
  readonly address?: string;
  readonly more?: Readonly<Record<string, string>>;
}

export interface ListAnswer<T> {
  readonly entries: readonly T[];
  /** The document, perhaps without its entries. */
  readonly around: JsonNode | undefined;
  /** By lower-case name; none over RPC. */
  readonly headers: Readonly<Record<string, string>>;
}

/** An answer's entries; passes what surrounds them to `onAround`. */
export async function listAnswer<T>(
  read: (onAround: (around: JsonNode | undefined) => void) => Promise<readonly T[]>,
  headers: ListAnswer<T>["headers"],
): Promise<ListAnswer<T>> {
  let around: JsonNode | undefined;
  const entries = await read((node) => {
    around = node;
  });
  return { entries, around, headers };
}

/** More pages than any list needs. */
const mostPages = 1000;
/**
 * Most consecutive pages without anything new that still name another: a gateway may have filtered their entries out.
 */
const mostIdlePages = 3;

/**
 * A list with all of its pages, followed as its answers say. It ends at a page with nothing new that names no unread
 * page; `rest` says what could not be read. `what` is its name, such as `runs`, which totals may include.
 */
export async function wholeList<T>(
  what: string,
  idOf: (entry: T) => string,
  ask: (page: NextPage) => Promise<ListAnswer<T>>,
): Promise<Listed<T>> {
  let answer = await ask({});
  let signs = signsOf({ ...answer, entries: answer.entries.length }, what);
  if (signs.next === undefined && !signs.isMore && signs.total === undefined) return answer.entries;
  const all = new Map(answer.entries.map((entry) => [idOf(entry), entry]));
  const asked = new Set<string>();
  let unread: string | undefined;
  let idle = 0;
  let { total } = signs;
  for (let pages = 1; unread === undefined; pages++) {
    const { next } = signs;
    if (next === undefined) {
      unread = signs.isMore;
      break;
    }
    asked.add(JSON.stringify(next.page));
    const following = await ask(next.page).catch((thrown: unknown) => {
      // a missing page, or one that is not a list, does not discredit the entries received
      if (!(thrown instanceof RunvaultError) || thrown.retry === "again" || thrown.exit === 130) throw thrown;
      return thrown.status === 204 ? { entries: [], around: undefined, headers: {} } : thrown;
    });
    if (following instanceof RunvaultError) unread = `${next.where}, which failed: ${following.message}`;
    else if (pages === mostPages) unread = `${next.where}, after ${mostPages} pages`;
    else {
      const before = all.size;
      const isSame = isSamePage(answer, following, idOf);
      for (const entry of following.entries) if (!all.has(idOf(entry))) all.set(idOf(entry), entry);
      idle = all.size === before ? idle + 1 : 0;
      if (idle > 0 && isSame && next.page.more !== undefined) {
        // the parameter's name is a guess, which this gateway may ignore
        unread = `${next.where}, and asking with ${Object.keys(next.page.more)} brings the same page`;
        break;
      }
      if (idle === 0) answer = following;
      signs = signsOf({ ...following, entries: following.entries.length }, what);
      const isEnd = signs.next !== undefined && asked.has(JSON.stringify(signs.next.page));
      if (idle > mostIdlePages || (idle > 0 && isEnd)) break;
      // the last page need not repeat it
      if ((signs.total?.entries ?? 0) > (total?.entries ?? 0)) total = signs.total;
    }
  }
  const short = (total?.entries ?? 0) > all.size ? `${total?.where} says ${total?.entries}` : undefined;
  const text = unread ?? short;
  if (text === undefined) return withRest([...all.values()], undefined);
  const least = Math.max(all.size + 1, total?.entries ?? 0);
  return withRest([...all.values()], { text, least });
}

/** The same list, with what could not be read. */
export function withRest<T>(entries: readonly T[], rest: ListRest | undefined): Listed<T> {
  return rest === undefined ? entries : Object.defineProperty([...entries], "rest", { value: rest });
}

function isSamePage<T>(one: ListAnswer<T>, other: ListAnswer<T>, idOf: (entry: T) => string): boolean {
  const ids = new Set(one.entries.map(idOf));
  return (
    ids.size > 0 && ids.size === other.entries.length && other.entries.every((entry) => ids.has(idOf(entry)))
  );
}

interface Signs {
  /** Where it says that there is more, if it does not say how to ask for that. */
  readonly isMore: string | undefined;
  readonly next: { readonly where: string; readonly page: NextPage } | undefined;
  /** A total that exceeds the entries of the answer. */
  readonly total: { readonly where: string; readonly entries: number } | undefined;
}

const moreNames = /^(?:has_?(?:more|next)(?:_?page)?|more|(?:is_?)?truncated)$/;
/** Flags that say that entries are missing; their opposite says nothing about further pages. */
const partialNames = /^(?:is_?)?(?:incomplete|partial)$/;
const nextNames =
  /^(?:next|cursor|continuation|after|end_cursor|(?:page|cursor|continuation)_token)$|^next_(?:page|page_token|page_url|page_link|cursor|token|link|url|uri|href|offset|marker|continuation_token)$/;
/** Names of values that are never addresses, whatever they look like. */
const tokenNames = /token|cursor|offset|marker|after|continuation/;

/** Whether a field beside a list is about further pages. */
export function isSignOfPages(name: string, what: string): boolean {
  const snake = snakeOf(name);
  return [moreNames, partialNames, nextNames, totalNamesOf(what)].some((names) => names.test(snake));
}

/** Signs in an answer that its list continues. Field names are compared in snake case. */
export function signsOf(
  {
    entries,
    around,
    headers,
  }: Pick<ListAnswer<unknown>, "around" | "headers"> & { readonly entries: number },
  what: string,
): Signs {
  const fields = [
    ...(around?.kind === "object" ? fieldsOf(around) : []),
    ...Object.entries(headers).map(([name, value]) => ({ where: `the header ${name}`, name, value })),
  ].map((field) => ({ ...field, snake: snakeOf(field.name) }));
  const flags = fields.filter(({ snake, value }) => moreNames.test(snake) && value !== "");
  const isEnded = flags.some(({ value }) => value === "false" || value === "0");
  const link = headers.link === undefined ? undefined : nextLink(headers.link);
  const named = fields.find(
    ({ snake, value }) => nextNames.test(snake) && !["", "0", "true", "false"].includes(value),
  );
  const partial = fields.find(({ snake, value }) => partialNames.test(snake) && value === "true");
  const flag = [...flags, ...fields.filter(({ snake }) => snake === "next")].find(
    ({ value }) => value === "true" || /^[1-9]\d*$/.test(value),
  );
  const next =
    link !== undefined
      ? { where: "there is a next page in the header Link", page: { address: link } }
      : named && {
          where: `there is a next page in ${named.where}`,
          page: pageOf(named.name, named.snake, named.value),
        };
  const totals = totalNamesOf(what);
  const total = fields.find(
    ({ snake, value }) => totals.test(snake) && /^\d{1,15}$/.test(value) && Number(value) > entries,
  );
  const says = partial ?? (isEnded ? undefined : flag);
  return {
    next: isEnded ? undefined : next,
    isMore: says ? `${says.where} says ${says.value}` : undefined,
    total: total && { where: total.where, entries: Number(total.value) },
  };
}

/** Scalars around a list; links are named by what they lead to. */
function fieldsOf(around: Extract<JsonNode, { readonly kind: "object" }>) {
  return [...leavesOf(around)].flatMap(([path, node]) => {
    const where = pathText(path);
    if (node.kind === "array") return linksIn(node.items).map((value) => ({ where, name: "next", value }));
    if (node.kind === "object" || node.kind === "null") return [];
    const [name, outer] = [path.at(-1)!, path.at(-2)];
    const isHref = outer !== undefined && /^(?:href|url|uri)$/i.test(name);
    return [{ where, name: isHref ? outer : name, value: node.kind === "string" ? node.value : node.text }];
  });
}

/** Addresses of the next page among self-describing links. */
function linksIn(items: readonly JsonNode[]): string[] {
  return items.flatMap((item) => {
    if (item.kind !== "object") return [];
    const member = (name: string) => {
      const node = item.members.find(([own]) => own === name)?.[1];
      return node?.kind === "string" ? node.value : "";
    };
    const rel = member("rel") || member("relation");
    return rel.toLowerCase() === "next" ? [member("href") || member("url")] : [];
  });
}

function snakeOf(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[-.@]/g, "_")
    .replace(/^(?:x_)?_*/, "");
}

/**
 * How to ask for the next page, by a field of an answer: `next_page_token` is sent as `page_token`, a bare `next` as
 * `cursor`.
 */
function pageOf(name: string, snake: string, value: string): NextPage {
  if (!tokenNames.test(snake) && /^(?:https?:)?\/|\?.*=/.test(value)) return { address: value };
  const bare = name.replace(/^x-/i, "").replace(/^next[-_]?(?=.)/i, "");
  const own = bare.replaceAll("-", "_").replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());
  const parameter =
    snake === "next" ? "cursor" : snake === "next_token" ? name : snake === "end_cursor" ? "after" : own;
  return { more: { [parameter]: value } };
}

/** Names for a total of a list's own entries: a total of rows, say, says nothing about runs. */
function totalNamesOf(what: string): RegExp {
  const one = what.replace(/s$/, "");
  const own = `items|entries|results|records|elements|${one}s?`;
  return new RegExp(`^(?:total|count)(?:_?(?:count|size|${own}))?$|^(?:${own})_?(?:total|count)$`);
}
