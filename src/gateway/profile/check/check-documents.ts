import { RunvaultError } from "../../../model/error.ts";
import { isTableName, type TableName } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { agreeing, countText } from "../../../model/text/plural.ts";
import { formatTime } from "../../../model/time.ts";
import { signsOf } from "../../paged-list.ts";
import { instantIn, truthOf } from "../../rest/field-values.ts";
import { boundText, stepOf } from "../../rest/written-bounds.ts";
import type { FactFields, RunFields } from "../profile.ts";
import {
  type AskedFor,
  type Asker,
  type CheckedDocuments,
  type CheckedRequest,
  jsonOf,
  type Told,
} from "./asker.ts";
import { likeliest, unitText } from "./column-look.ts";
import { arraysIn, type JsonNode, type JsonObject, leavesOf, nodeAt } from "./json-node.ts";
import type { DocumentCheck, Finding } from "./profile-check.ts";
import { pathText, shortText } from "./row-page.ts";
import { scalarText } from "./sample.ts";
import { isLikelyTime, likelyUnit } from "./times.ts";

export interface SeenRun extends RunRef {
  /** Undefined if no document has its status. */
  readonly status: string | undefined;
}

/** The gateway's counts of a table. */
export interface CountedTable {
  readonly rows: bigint;
  readonly first: bigint | undefined;
  readonly last: bigint | undefined;
}

/** Most instances whose runs are requested: a finished run is needed, and another one. */
const mostInstances = 3;

const json = "application/json";

/** Requests a profile's documents and reads them as the profile says. */
export class DocumentChecks {
  readonly checks: DocumentCheck[] = [];
  readonly runs: SeenRun[] = [];
  /** Whether all lists that name runs could be read completely. */
  listed = true;
  readonly #documents: CheckedDocuments;
  readonly #asker: Asker;
  /** The profile key above the documents. */
  readonly #at: "documents" | "rpc.documents";

  constructor(documents: CheckedDocuments, asker: Asker, at: "documents" | "rpc.documents" = "documents") {
    this.#documents = documents;
    this.#asker = asker;
    this.#at = at;
  }

  /** The lists of instances and runs; only those of the wanted instance if there is one. */
  async lists(wanted: RunRef | undefined): Promise<void> {
    const { given } = this.#documents;
    const instances = new Set<string>();
    for (const [instanceId, runIds] of Object.entries(given)) {
      instances.add(instanceId);
      for (const runId of runIds) this.#addRun({ instanceId, runId, status: undefined });
    }
    for (const id of await this.#instances()) instances.add(id);
    if (wanted !== undefined) instances.add(wanted.instanceId);
    if (this.#documents.runs === undefined) return;
    const ordered = wanted === undefined ? [...instances] : [wanted.instanceId, ...instances];
    for (const instanceId of [...new Set(ordered)].slice(0, mostInstances)) {
      await this.#runsOf(instanceId);
      if (
        wanted === undefined &&
        this.runs.some(({ status }) => status === "FINISHED") &&
        this.runs.length > 1
      )
        break;
    }
  }

  /** Reports a requested run that is not listed. */
  tellUnlisted(wanted: RunRef): Finding[] {
    const { instances, runs, given } = this.#documents;
    const isListed = this.runs.some(
      ({ instanceId, runId }) => instanceId === wanted.instanceId && runId === wanted.runId,
    );
    const names = runs !== undefined || instances?.runs !== undefined || Object.keys(given).length > 0;
    if (isListed || !names || !this.listed) return [];
    return [
      {
        kind: "missing_field",
        key:
          runs !== undefined
            ? `${this.#at}.runs`
            : instances?.runs !== undefined
              ? `${this.#at}.instances`
              : `${this.#at}.given`,
        message: `the run ${wanted.instanceId}/${wanted.runId} is not in any list`,
        hint: `The lists have ${this.runs.length === 0 ? "no runs" : shortText(this.runs.map(({ instanceId, runId }) => `${instanceId}/${runId}`).join(", "), 200)}.`,
      },
    ];
  }

  #addRun(run: SeenRun): void {
    const known = this.runs.findIndex(
      ({ instanceId, runId }) => instanceId === run.instanceId && runId === run.runId,
    );
    if (known < 0) this.runs.push(run);
    else if (run.status !== undefined) this.runs[known] = run;
  }

  async #instances(): Promise<readonly string[]> {
    const document = this.#documents.instances;
    if (document === undefined) return [];
    const key = `${this.#at}.instances`;
    const answer = await this.#ask("instances", document, {}, key);
    if (answer === undefined) return [];
    const entries = this.#listIn(answer, document.list, key);
    if (entries === undefined) return [];
    const ids = entries.map((entry) => scalarText(nodeAt(entry, document.id)));
    const findings: Finding[] = [];
    const lacking = ids.findIndex((id) => id === undefined || id === "");
    if (lacking >= 0) {
      findings.push(missingIn(entries[lacking]!, document.id, `${key}.id`, "an entry"));
    }
    const found = ids.flatMap((id) => (id === undefined || id === "" ? [] : [id]));
    const twice = found.find((id, at) => found.indexOf(id) !== at);
    if (twice !== undefined) {
      findings.push({
        kind: "wrong_value",
        key: `${key}.id`,
        message: `two instances have the id ${JSON.stringify(shortText(twice))}`,
        hint: `Use a field with unique ids. An entry is ${shortText(entries[0]!.text, 160)}.`,
      });
    }
    if (document.runs !== undefined) {
      const runs = document.runs;
      for (const [at, entry] of entries.entries()) {
        const list = nodeAt(entry, runs);
        if (list?.kind !== "array") {
          findings.push(missingIn(entry, runs, `${key}.runs`, "an entry", "list of run ids"));
          break;
        }
        for (const item of list.items) {
          const runId = scalarText(item);
          if (runId !== undefined && ids[at] !== undefined)
            this.#addRun({ instanceId: ids[at], runId, status: undefined });
        }
      }
    }
    findings.push(...pagedList(answer, document, "instances", key, entries.length));
    this.#tell(
      "instances",
      answer,
      `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`,
      [["ids", shortText(found.join(", "), 80)]],
      findings,
    );
    return found;
  }

  async #runsOf(instanceId: string): Promise<void> {
    const document = this.#documents.runs!;
    const key = `${this.#at}.runs`;
    const answer = await this.#ask("runs", document, { instance: instanceId }, key);
    if (answer === undefined) return;
    const entries = this.#listIn(answer, document.list, key);
    if (entries === undefined) return;
    const findings: Finding[] = [];
    const words = new Set<string>();
    for (const entry of entries) {
      const runId = scalarText(nodeAt(entry, document.id));
      if (runId === undefined || runId === "") {
        if (findings.length === 0) findings.push(missingIn(entry, document.id, `${key}.id`, "an entry"));
        continue;
      }
      this.#addRun({ instanceId, runId, status: statusOf(entry, document, key, findings, words) });
      for (const [name, path] of [
        ["started", document.started],
        ["ended", document.ended],
      ] as const) {
        if (path !== undefined)
          tellTime(entry, path, document.unit, `${key}.${name}`, name === "ended", findings);
      }
      if (document.final !== undefined) {
        if (!isTruth(nodeAt(entry, document.final)))
          once(findings, missingIn(entry, document.final, `${key}.final`, "an entry", "true or false"));
      }
      if (
        document.storageVersion !== undefined &&
        scalarText(nodeAt(entry, document.storageVersion)) === undefined
      ) {
        once(findings, missingIn(entry, document.storageVersion, `${key}.storage_version`, "an entry"));
      }
    }
    const read: (readonly [string, string])[] = [
      [
        "ids",
        shortText(entries.map((entry) => scalarText(nodeAt(entry, document.id)) ?? "?").join(", "), 80),
      ],
    ];
    if (words.size > 0) read.push(["status", [...words].join(", ")]);
    findings.push(...pagedList(answer, document, "runs", key, entries.length));
    this.#tell(
      `runs of ${instanceId}`,
      answer,
      `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`,
      read,
      findings,
    );
  }

  /** Summary, resources and instance: stored unchanged, so their contents are not checked. */
  async others(run: RunRef): Promise<void> {
    for (const document of ["summary", "resources", "instance"] as const) {
      const request = this.#documents[document];
      if (request === undefined) continue;
      const key = `${this.#at}.${document}`;
      const answer = await this.#ask(document, request, { instance: run.instanceId, run: run.runId }, key);
      if (answer === undefined) continue;
      const findings: Finding[] = [];
      const currentRun = document === "instance" ? this.#documents.instance?.currentRun : undefined;
      if (currentRun !== undefined && nodeAt(answer.node, currentRun) === undefined) {
        findings.push(missingIn(answer.node, currentRun, `${key}.current_run`, "the answer"));
      }
      this.#tell(document, answer, "", [], findings);
    }
  }

  /** Counts of a run's tables, and whether they respect bounds. */
  async facts(run: RunRef, tables: readonly TableName[]): Promise<ReadonlyMap<TableName, CountedTable>> {
    const counts = new Map<TableName, CountedTable>();
    const document = this.#documents.facts;
    if (document === undefined) return counts;
    const key = `${this.#at}.storage`;
    const findings: Finding[] = [];
    const asked = { instance: run.instanceId, run: run.runId };
    const ofOne = document.list === undefined || document.tableParameter !== undefined;
    for (const table of ofOne ? tables : tables.slice(0, 1)) {
      const answer = await this.#ask("storage", document, { ...asked, ...namedTable(document, table) }, key);
      if (answer === undefined) return counts;
      const entries = this.#factsIn(answer, document, table, key);
      if (entries === undefined) return counts;
      const read: (readonly [string, string])[] = [];
      const names = entries.map((entry) => tableOf(entry, document));
      for (const wanted of ofOne ? [table] : tables) {
        const at = document.list === undefined ? 0 : names.indexOf(wanted);
        const entry = entries[at];
        if (entry === undefined) {
          const gateways = entries.map((one) => scalarText(nodeAt(one, document.table)) ?? "?");
          findings.push({
            kind: "facts",
            key: `${key}.tables`,
            message: `no entry is for ${wanted}`,
            hint: `The gateway lists ${shortText(gateways.join(", "), 160)}: say which one it is, for example \`tables: { ${gateways[0] ?? "…"}: ${wanted} }\`.`,
          });
          continue;
        }
        const counted = readFacts(entry, document, key, wanted, findings);
        if (counted === undefined) continue;
        counts.set(wanted, counted);
        read.push([wanted, countText(counted.rows, "row")]);
        await this.#heedsBounds(document, asked, wanted, counted, key, findings);
      }
      this.#tell(
        document.list === undefined ? `storage of ${table}` : "storage",
        answer,
        `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`,
        read,
        findings.splice(0),
      );
    }
    return counts;
  }

  #factsIn(
    answer: Answer,
    document: FactFields,
    table: TableName,
    key: string,
  ): readonly JsonNode[] | undefined {
    if (document.list === undefined) return [answer.node];
    return this.#listIn(answer, document.list, key, table);
  }

  /** Requests counts with bounds around the first row: they must be less than the totals. */
  async #heedsBounds(
    document: CheckedRequest & FactFields,
    asked: AskedFor,
    table: TableName,
    { rows, first, last }: CountedTable,
    key: string,
    findings: Finding[],
  ): Promise<void> {
    if (
      !document.heedBounds ||
      document.parameters.to === undefined ||
      first === undefined ||
      last === undefined
    )
      return;
    // late enough to include the first row, whether `to` is inclusive or exclusive
    const to = first + 2n * stepOf(document.times);
    if (rows < 2n || to >= last) return;
    const told = await this.#told(document, {
      ...asked,
      ...namedTable(document, table),
      from: boundText(first, document.times),
      to: boundText(to, document.times),
    });
    const node = told?.status === 200 ? jsonOf(told) : undefined;
    const list = document.list === undefined ? undefined : nodeAt(node, document.list);
    const same = list?.kind === "array" ? list.items.find((one) => tableOf(one, document) === table) : node;
    const bounded = scalarText(nodeAt(same, document.rows));
    if (bounded === undefined || BigInt(/^\d+$/.test(bounded) ? bounded : 0) < rows) return;
    findings.push({
      kind: "facts",
      key: `${key}.heeds_bounds`,
      message: `${table}: the count is ${countText(rows, "row")} with bounds around the first row, the same as without bounds`,
      hint: "The gateway ignores these bounds: correct the names of their parameters, or write `heeds_bounds: false`.",
    });
  }

  async #told(request: CheckedRequest, asked: AskedFor): Promise<Told | undefined> {
    try {
      return await this.#asker.ask(request, asked, json, {});
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError) || ["interrupted", "deadline"].includes(thrown.code))
        throw thrown;
      return undefined;
    }
  }

  async #ask(
    document: string,
    request: CheckedRequest,
    asked: AskedFor,
    key: string,
  ): Promise<Answer | undefined> {
    const place = { ...(asked.instance === undefined ? {} : { instance: asked.instance }) };
    let told: Told;
    try {
      told = await this.#asker.ask(request, asked, json, place);
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError) || ["interrupted", "deadline"].includes(thrown.code))
        throw thrown;
      this.listed = false;
      this.checks.push({
        document,
        request: `${request.method} ${request.path}`,
        status: thrown.status ?? null,
        mediaType: null,
        holds: "",
        read: [],
        findings: [
          {
            kind: "no_answer",
            key: `${key}.${this.#at === "documents" ? "path" : "method"}`,
            message: thrown.message,
            hint: thrown.hint ?? "Try again; the gateway's log may say why.",
          },
        ],
      });
      return undefined;
    }
    const node = told.status === 200 ? jsonOf(told) : undefined;
    if (node !== undefined && (told.mediaType === json || request.rpc !== undefined)) return { told, node };
    this.listed = false;
    const what =
      told.status !== 200
        ? told.refusal === undefined
          ? `the gateway answered with status ${told.status}`
          : `the gateway answered ${told.refusal}`
        : told.mediaType !== json && request.rpc === undefined
          ? `the answer is ${told.mediaType ?? "without a media type"}, not ${json}`
          : "the answer is not a JSON document";
    this.#tell(
      document,
      { told, node: undefined },
      "",
      [],
      [
        {
          kind: told.status === 200 ? "media_type" : "no_answer",
          key: `${key}.${request.rpc === undefined ? "path" : told.status === 404 ? "parameters" : "method"}`,
          message: `${document}: ${what}`,
          hint: told.status === 401 ? this.#asker.unauthenticatedHint : refusedHint(told, request, key),
        },
      ],
    );
    return undefined;
  }

  #listIn(
    answer: Answer,
    path: readonly string[],
    key: string,
    table?: TableName,
  ): readonly JsonNode[] | undefined {
    const list = nodeAt(answer.node, path);
    if (list?.kind === "array") return list.items;
    this.listed = false;
    const arrays = [...arraysIn(answer.node)].map(
      ([found, items]) =>
        `${pathText(found)} (${countText(items.length, "entry").replace("entrys", "entries")})`,
    );
    this.#tell(
      key.split(".").at(-1)!,
      answer,
      "",
      [],
      [
        {
          kind: table === undefined ? "list_path" : "facts",
          key: `${key}.list`,
          message: `the answer has no list at ${pathText(path)}`,
          hint:
            arrays.length === 0
              ? `The answer has no lists. It begins with ${shortText(answer.told.text.trim(), 80)}.`
              : `It has one at ${arrays.join(", ")}.`,
        },
      ],
    );
    return undefined;
  }

  #tell(
    document: string,
    { told }: { readonly told: Told; readonly node: JsonNode | undefined },
    holds: string,
    read: DocumentCheck["read"],
    findings: readonly Finding[],
  ): void {
    // a fault that several instances share is reported once
    const known = new Set(
      this.checks.flatMap((check) => check.findings.map(({ key, message }) => `${key} ${message}`)),
    );
    this.checks.push({
      document,
      request: told.request,
      status: told.status,
      mediaType: told.mediaType ?? null,
      holds,
      read,
      findings: findings.filter(({ key, message }) => !known.has(`${key} ${message}`)),
    });
  }
}

function refusedHint({ status }: Told, { rpc }: CheckedRequest, key: string): string {
  if (status === 403) return "Check the token, or the headers in the profile.";
  const what =
    rpc === undefined
      ? "path and its parameters"
      : status === 501
        ? "method, and `base` of rpc"
        : "request fields for the run and the instance";
  return `Look up the ${what}. If the gateway has no such document, write \`${key.split(".").at(-1)}: none\`.`;
}

interface Answer {
  readonly told: Told;
  readonly node: JsonNode;
}

function isTruth(node: JsonNode | undefined): boolean {
  return node !== undefined && truthOf(node.text) !== undefined;
}

function once(findings: Finding[], finding: Finding): void {
  if (!findings.some(({ key }) => key === finding.key)) findings.push(finding);
}

function missingIn(
  node: JsonNode,
  path: readonly string[],
  key: string,
  where: string,
  what = "value",
): Finding {
  const leaves = node.kind === "object" ? [...leavesOf(node as JsonObject)] : [];
  const names = leaves.map(([found]) => pathText(found));
  const near = likeliest(path.at(-1) ?? "", names);
  return {
    kind: key.includes(".storage") ? "facts" : "missing_field",
    key,
    message: `${where} has no ${what} at ${pathText(path)}`,
    hint:
      near === undefined
        ? `Received: ${shortText(node.text, 200)}`
        : `Did you mean ${near}? Received: ${shortText(node.text, 200)}`,
  };
}

function statusOf(
  entry: JsonNode,
  { status, words }: RunFields,
  key: string,
  findings: Finding[],
  seen: Set<string>,
): string | undefined {
  if (status === undefined) return undefined;
  const word = scalarText(nodeAt(entry, status));
  if (word === undefined) {
    once(findings, missingIn(entry, status, `${key}.status`, "an entry"));
    return undefined;
  }
  const meant = Object.hasOwn(words, word) ? words[word] : undefined;
  seen.add(`${word} (${meant ?? "?"})`);
  if (
    meant === undefined &&
    !findings.some(({ message }) => message.includes(`value ${JSON.stringify(word)},`))
  ) {
    findings.push({
      kind: "run_words",
      key: `${key}.words`,
      message: `the status has the value ${JSON.stringify(shortText(word))}, which is not in \`words\` (${Object.keys(words).join(", ")})`,
      hint: `Say what it means: \`words: { ${shortText(word)}: FINISHED }\`, or RUNNING, or FAILED.`,
    });
  }
  return meant;
}

function tellTime(
  entry: JsonNode,
  path: readonly string[],
  unit: FactFields["unit"],
  key: string,
  mayLack: boolean,
  findings: Finding[],
): void {
  const node = nodeAt(entry, path);
  const text = scalarText(node);
  if (text === undefined || text === "") {
    if (!mayLack || (node !== undefined && node.kind !== "null" && text === undefined)) {
      once(findings, missingIn(entry, path, key, "an entry", "time"));
    }
    return;
  }
  const ns = instantIn(text, unit);
  if ((ns !== undefined && isLikelyTime(ns)) || (mayLack && ns === 0n)) return;
  const likely = likelyUnit(text);
  once(findings, {
    kind: key.includes(".storage") ? "facts" : "time_unit",
    key,
    message: `${pathText(path)} is ${shortText(text)}, which in ${unitText(unit)} is not a time between 1990 and 2100`,
    hint:
      likely === undefined
        ? "It is not a time in any unit: use another field."
        : `In ${unitText(likely)} it is ${formatTime(instantIn(text, likely)!).slice(0, 19)}Z: write \`unit: ${likely}\`.`,
  });
}

function timeIn(entry: JsonNode, path: readonly string[], unit: FactFields["unit"]): bigint | undefined {
  const text = scalarText(nodeAt(entry, path));
  return text === undefined ? undefined : instantIn(text, unit);
}

function tableOf(entry: JsonNode, { table, tableWords }: FactFields): TableName | undefined {
  const word = scalarText(nodeAt(entry, table));
  if (word === undefined) return undefined;
  if (Object.hasOwn(tableWords, word)) return tableWords[word];
  return isTableName(word) && !Object.values(tableWords).includes(word) ? word : undefined;
}

function namedTable({ tableParameter, tableWords }: FactFields, table: TableName): Pick<AskedFor, "more"> {
  if (tableParameter === undefined) return {};
  const word = Object.entries(tableWords).find(([, ours]) => ours === table)?.[0] ?? table;
  return { more: [[tableParameter, word]] };
}

function readFacts(
  entry: JsonNode,
  document: FactFields,
  key: string,
  table: TableName,
  findings: Finding[],
): CountedTable | undefined {
  const rows = scalarText(nodeAt(entry, document.rows));
  if (rows === undefined || !/^\d+$/.test(rows)) {
    findings.push(missingIn(entry, document.rows, `${key}.rows`, `the entry for ${table}`, "number of rows"));
    return undefined;
  }
  const times: { first?: bigint | undefined; last?: bigint | undefined } = {};
  for (const [name, path] of [
    ["first", document.first],
    ["last", document.last],
  ] as const) {
    if (path === undefined) continue;
    tellTime(entry, path, document.unit, `${key}.${name}`, rows === "0", findings);
    times[name] = timeIn(entry, path, document.unit);
  }
  const { first, last } = times;
  if (first !== undefined && last !== undefined && first > last) {
    findings.push({
      kind: "facts",
      key: `${key}.first`,
      message: `the first row of ${table}, ${formatTime(first)}, is later than the last, ${formatTime(last)}`,
      hint: "Swap `first` and `last`.",
    });
  }
  if (document.final !== undefined && !isTruth(nodeAt(entry, document.final))) {
    findings.push(
      missingIn(entry, document.final, `${key}.final`, `the entry for ${table}`, "true or false"),
    );
  }
  return { rows: BigInt(rows), first, last };
}

/** A list that continues without an address may silently lack runs. */
function pagedList(
  { told, node }: { readonly told: Told; readonly node: JsonNode },
  { isWhole }: { readonly isWhole?: boolean | undefined },
  what: string,
  key: string,
  entries: number,
): Finding[] {
  const { next, isMore, total } = signsOf({ entries, around: node, headers: told.headers }, what);
  if (isWhole === true || next?.page.address !== undefined) return [];
  const sent = Object.entries(next?.page.more ?? {}).map(([name, value]) => ({ name, value }))[0];
  const seen =
    sent !== undefined
      ? `${next!.where}: ${shortText(sent.value)}`
      : (isMore ?? (total && `${total.where} says ${total.entries}`));
  if (seen === undefined) return [];
  const jobs =
    sent === undefined
      ? "Jobs"
      : `\`archive\` sends it as \`${sent.name}\`. If the gateway ignores that, jobs`;
  return [
    {
      kind: "page_kind",
      key,
      message: `${entries} ${agreeing(entries, "entry", "entries")} received, but ${seen}`,
      hint: `${jobs} that choose runs from this list end with 4. Request the whole list at once, for example with \`parameters: { fixed: { limit: 1000 } }\` and the gateway's name for limit; or, if nothing is missing, write \`whole: true\`.`,
    },
  ];
}
