import { z } from "zod";
import { exit } from "../../model/error.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { visible } from "../../model/text/visible-text.ts";
import { type BeginLine, type ResultLine, type Trouble, troubleKinds } from "../record/job-record.ts";
import type { Changes } from "./changes.ts";

/** The version of messages. Adding a key does not change it; removing one or changing a meaning does. */
export const messageVersion = 1;

/** Most changes of each kind, and most runs, in a message; `counts` has their numbers. */
const mostTroubles = 20;
const mostRuns = 10;
/** Longer texts say nothing more. */
const longestText = 500;
/** In a chat line: most changes of each kind, and the length of each. */
const mostInLine = 3;
const longestInLine = 200;

function key<T extends z.ZodType>(schema: T, description: string): T {
  return schema.meta({ description }) as T;
}

const count = z.int().nonnegative();
const id = z.string().nullable();

const toldTroubleSchema = z.strictObject({
  key: key(z.string(), "stays the same for as long as the trouble lasts, for matching alerts"),
  kind: key(z.enum(troubleKinds), "what it is about"),
  instance: key(id, "instance, if it is about a run"),
  run: key(id, "run, if it is about one"),
  table: key(id, "table, if it is about one"),
  level: key(z.string(), "how bad it is: the state of a table, an exit status, nights that a disk lasts for"),
  text: key(z.string(), "what is wrong, one sentence"),
  hint: key(id, "what to do about it"),
  since: key(z.iso.datetime(), "when it was first seen"),
});

const toldRunSchema = z.strictObject({
  instance: key(z.string(), "instance of the run"),
  run: key(z.string(), "id of the run"),
  change: key(z.enum(["worse", "mended", "reminded"]), "what changed, the worst first"),
  tables: key(z.array(z.string()), "its affected tables"),
  text: key(z.string(), "what is wrong, one sentence"),
  hint: key(id, "what to do about it"),
});

/** The document that webhooks and commands get. */
export const messageSchema = z
  .strictObject({
    version: key(z.literal(messageVersion), "version of this document"),
    kind: key(
      z.enum(["change", "test"]),
      "test: sent by `runvault check --test-notify`, and nothing changed",
    ),
    job: key(z.string(), "name of the job"),
    execution: key(id, "id of the execution, for `runvault jobs show`; null in a test, or if there was none"),
    host: key(z.string(), "machine that it ran on"),
    tool: key(z.string(), "program that sends it, with its version"),
    at: key(z.iso.datetime(), "when the execution ended"),
    result: key(z.enum(["done", "failed"]), "failed: with any exit status but 0"),
    exit: key(count, "exit status of the execution"),
    counts: key(
      z.strictObject({
        worse: key(count, "number of new or worse troubles"),
        mended: key(count, "number of resolved troubles"),
        reminded: key(count, "number of continuing troubles that were reported long ago"),
        troubles: key(count, "number of all current troubles"),
      }),
      "numbers of troubles",
    ),
    worse: key(z.array(toldTroubleSchema), `new or worse troubles, ${mostTroubles} at most`),
    mended: key(z.array(toldTroubleSchema), `resolved troubles, ${mostTroubles} at most`),
    reminded: key(
      z.array(toldTroubleSchema),
      `continuing troubles that were reported long ago, ${mostTroubles} at most`,
    ),
    runs: key(z.array(toldRunSchema), `the affected runs, at most ${mostRuns}, with a hint for each`),
    text: key(z.string(), "all of it in one line, for chats"),
  })
  .meta({
    title: "runvault message",
    description:
      "What runvault sends to a webhook, and to a command on standard input, when something changed.",
  });
export type Message = z.infer<typeof messageSchema>;

/** The JSON Schema of messages. */
export function messageJsonSchema(): unknown {
  return z.toJSONSchema(messageSchema, { target: "draft-2020-12" });
}

/** The execution that a message is about. */
export interface MessageOf {
  readonly begin: Pick<BeginLine, "job" | "host" | "tool"> & { readonly id: string | null };
  readonly result: Pick<ResultLine, "at" | "exit">;
  /** The changes to report; others are only counted. */
  readonly changes: Changes;
}

/** The message of an execution, without known secrets and without queries of addresses. */
export function messageOf({ begin, result, changes }: MessageOf, scrubber: Pick<Scrubber, "scrub">): Message {
  const clean = cleaner(scrubber);
  const { worse, mended, reminded, troubles } = changes;
  const told = (list: readonly Trouble[]) =>
    [...list]
      .sort(byKind)
      .slice(0, mostTroubles)
      .map((trouble) => toldTrouble(trouble, clean));
  const message = {
    version: messageVersion,
    kind: "change",
    job: begin.job,
    execution: begin.id,
    host: clean(begin.host),
    tool: begin.tool,
    at: result.at,
    result: result.exit === exit.done ? "done" : "failed",
    exit: result.exit,
    counts: {
      worse: worse.length,
      mended: mended.length,
      reminded: reminded.length,
      troubles: troubles.length,
    },
    worse: told(worse),
    mended: told(mended),
    reminded: told(reminded),
    runs: runsOf(changes, clean),
  } as const;
  return { ...message, text: lineOf(message) };
}

/** The message with which `runvault check --test-notify` tests a notifier. */
export function testMessage(begin: Pick<BeginLine, "job" | "host" | "tool">, at: string): Message {
  const { job, host, tool } = begin;
  const message = {
    ...{ version: messageVersion, kind: "test", job, execution: null, host, tool, at },
    ...{ result: "done", exit: exit.done },
    counts: { worse: 0, mended: 0, reminded: 0, troubles: 0 },
    ...{ worse: [], mended: [], reminded: [], runs: [] },
  } as const satisfies Omit<Message, "text">;
  return { ...message, text: chatText(titleOf(message)) };
}

type Clean = (text: string) => string;

function cleaner(scrubber: Pick<Scrubber, "scrub">): Clean {
  return (text) => cut(visible(withoutQueries(scrubber.scrub(text))), longestText);
}

/** Cuts addresses at their query or fragment, because values there may be secrets. */
function withoutQueries(text: string): string {
  return text.replace(/\b([a-z][a-z0-9+.-]{0,15}:\/\/[^\s?#"'<>`]*)[?#][^\s"'<>`]*/gi, "$1");
}

function cut(text: string, most: number): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

/** Troubles of the whole job first. */
const order: readonly Trouble["kind"][] = [
  "job",
  "disk",
  "died",
  "missed",
  "after",
  "expiring",
  "gone",
  "run",
  "table",
];

function byKind(a: Trouble, b: Trouble): number {
  return order.indexOf(a.kind) - order.indexOf(b.kind);
}

function toldTrouble(trouble: Trouble, clean: Clean): Message["worse"][number] {
  const { key, kind, instance, run, table, level, text, hint, since } = trouble;
  const name = (id: string | null) => (id === null ? null : clean(id));
  return {
    ...{ key: clean(key), kind, instance: name(instance), run: name(run), table: name(table), level },
    // a resolved trouble needs no hint
    ...{ text: clean(text), hint: trouble.mended === null ? name(hint) : null, since },
  };
}

/** The affected runs, those with worse troubles first. */
function runsOf({ worse, mended, reminded }: Changes, clean: Clean): Message["runs"] {
  const runs = new Map<string, Message["runs"][number]>();
  for (const [change, list] of Object.entries({ worse, reminded, mended } as const)) {
    for (const { instance, run, table, text, hint } of [...list].sort(byKind)) {
      if (instance === null || run === null) continue;
      const id = JSON.stringify([instance, run]);
      const known = runs.get(id);
      if (known === undefined && runs.size === mostRuns) continue;
      const entry = known ?? {
        ...{ instance: clean(instance), run: clean(run), change: change as keyof typeof rank, tables: [] },
        ...{ text: clean(text), hint: hint === null ? null : clean(hint) },
      };
      if (table !== null && !entry.tables.includes(table)) entry.tables.push(clean(table));
      runs.set(id, entry);
    }
  }
  return [...runs.values()];
}
const rank = { worse: 0, reminded: 1, mended: 2 };

/** What a message is about, in one line: which job, and how it ended. Not escaped for chats. */
export function titleOf(message: Omit<Message, "text">): string {
  const { job, host, exit: status } = message;
  if (message.kind === "test") return `${subject(job, host)}: a test, nothing changed`;
  const how =
    message.execution === null
      ? status === exit.done
        ? "can be executed again"
        : "cannot be executed"
      : status === exit.done
        ? "succeeded"
        : `failed with exit status ${status}`;
  return `${subject(job, host)} ${how}`;
}

function lineOf(message: Omit<Message, "text">): string {
  const { counts } = message;
  const part = (word: string, list: Message["worse"], all: number) => {
    if (all === 0) return [];
    const shown = list.slice(0, mostInLine).map(({ text }) => cut(text, longestInLine));
    const more = all - shown.length;
    return [`${word} (${all}): ${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`];
  };
  return chatText(
    [
      titleOf(message),
      ...part("worse", message.worse, counts.worse),
      ...part("resolved", message.mended, counts.mended),
      ...part("still wrong", message.reminded, counts.reminded),
    ].join(" — "),
  );
}

function subject(job: string, host: string): string {
  return ["runvault job", job, "on", host].join(" ");
}

/** What changed, under headings for people, and what a message says of itself. */
export interface MessageParts {
  readonly changes: readonly {
    readonly heading: string;
    readonly lines: readonly { readonly text: string; readonly hint: string | null }[];
  }[];
  readonly foot: string;
}

/** The changes of a message, the first `most` of each kind. */
export function partsOf(message: Message, most: number): MessageParts {
  const part = (word: string, list: Message["worse"], all: number) => {
    if (all === 0) return [];
    const lines = list.slice(0, most).map(({ text, hint }) => ({ text, hint }));
    const more = all - lines.length;
    if (more > 0) lines.push({ text: `and ${more} more`, hint: null });
    return [{ heading: `${word} (${all})`, lines }];
  };
  const { counts, execution, tool, at } = message;
  return {
    changes: [
      ...part("Worse", message.worse, counts.worse),
      ...part("Resolved", message.mended, counts.mended),
      ...part("Still wrong", message.reminded, counts.reminded),
    ],
    foot: [...(execution === null ? [] : [`execution ${execution}`]), tool, at].join(", "),
  };
}

/** A text that chats show as it is: a name from outside makes no link and calls nobody. */
export function chatText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replace(/@(?=\w)/g, "@ ");
}
