import { instantIn } from "../../../rest/field-values.ts";
import { nodeAt } from "../../check/json-node.ts";
import { emptyNext, fieldsAround, shortText, signOfNext, signOfTotal } from "../../check/row-page.ts";
import { scalarText } from "../../check/sample.ts";
import { likelyUnit } from "../../check/times.ts";
import { type DraftLine, pathScalar, scalar, unsure } from "../draft-line.ts";
import type { FoundRows } from "../seen/found-rows.ts";
import { parameterRole } from "../seen/guessed-names.ts";
import type { AskablePath } from "../seen/known-paths.ts";
import { unitOfName } from "../time-unit.ts";
import type { DraftedTable } from "./draft-text.ts";

type RequestPart = Pick<DraftedTable, "request" | "times">;

/** How a table's rows are requested, and where they are in the answer. `time` is the line of `ts_event`. */
export function requestLines(found: FoundRows, time: DraftLine | undefined): RequestPart {
  const { at, rows, told, array } = found;
  const types = told.mediaType ?? "?";
  const isUsual = types === (array === undefined ? "application/x-ndjson" : "application/json");
  const form = array === undefined ? "lines: true" : `array: ${pathScalar(array)}`;
  const short = array === undefined ? "lines" : array.length === 0 ? "array" : `{ ${form} }`;
  const order = orderOf(found, time);
  return {
    request: [
      { key: "path", value: scalar(at.path), why: `it returned ${rows.length} rows` },
      parametersLine(at),
      { key: "pages", ...pagesOf(found) },
      {
        key: "rows",
        value: isUsual ? short : `{ ${form}, media_types: [${scalar(types)}] }`,
        why: "as in the answer",
      },
      ...(order === undefined ? [] : [{ key: "order", value: order, why: "by the times of the rows seen" }]),
      ...limitLines(at, found.takenLimit),
    ],
    times: timesLine(at, time),
  };
}

/** The same for a path that returned no rows. */
export function unseenLines(at: AskablePath): Omit<DraftedTable, "name"> {
  return {
    request: [
      {
        key: "path",
        value: scalar(at.path),
        why: "by its name; it returned no rows, so the lines below are guesses",
      },
      parametersLine(at),
      ...limitLines(at),
    ],
    times: timesLine(at, undefined),
    numbers: undefined,
    columns: undefined,
  };
}

/** Which parameter carries which part of a request. */
export function parametersLine({ path, names, known }: AskablePath): DraftLine {
  const isDescribed = known.about !== undefined;
  const sent = (["instance", "run", "from", "to", "limit"] as const).flatMap((role) => {
    const name = names[role];
    const isId = role === "instance" || role === "run";
    if (name === undefined || (isId && path.includes(`{${role}}`))) return [];
    return [`${role}: ${isDescribed || isId ? scalar(name) : unsure(name)}`];
  });
  const why = isDescribed ? "by their names" : "usual names; rows cannot confirm them";
  return { key: "parameters", value: sent.length === 0 ? "{}" : `{ ${sent.join(", ")} }`, why };
}

/**
 * Rows do not show the unit of bounds. Parameter names may; otherwise it is probably that of the rows, in the line of
 * `ts_event`.
 */
export function timesLine({ names, known }: AskablePath, time: DraftLine | undefined): DraftLine | undefined {
  const bounds = [names.from, names.to].filter((name) => name !== undefined);
  if (bounds.length === 0) return undefined;
  const about = (name: string | undefined) => known.about?.[name ?? ""]?.description ?? "";
  const said = bounds.map(about).find((text) => text !== "") ?? "";
  const told = bounds.map(unitOfName).find((unit) => unit !== undefined) ?? unitOfText(said);
  const ofRows = /unit: "?(\w+)/.exec(time?.value ?? "")?.[1];
  const ends = [
    ...(names.from === undefined ? [] : [`from: ${unsure(endOf(about(names.from)) ?? "inclusive")}`]),
    ...(names.to === undefined ? [] : [`to: ${unsure(endOf(about(names.to)) ?? "exclusive")}`]),
  ];
  const reasons = [
    ...(said === "" ? [] : [`the document says: ${shortText(said.replace(/\s+/g, " "), 100)}`]),
    ...(told === undefined && ofRows !== undefined
      ? ["the unit is that of the rows; bounds may have another"]
      : []),
    ...((told ?? ofRows) === "rfc3339" ? ["{ rfc3339: ms } if the gateway reads only three decimals"] : []),
    "look up whether bounds include rows with exactly that time",
  ];
  const value = `{ unit: ${unsure(told ?? ofRows)}, ${ends.join(", ")} }`;
  return { key: "times", value, why: reasons.join("; ") };
}

/** Whether a bound includes rows with exactly its time, if a description says so. */
function endOf(description: string): "inclusive" | "exclusive" | undefined {
  if (/exclusive|excluded/i.test(description)) return "exclusive";
  return /inclusive|included/i.test(description) ? "inclusive" : undefined;
}

function unitOfText(text: string): string | undefined {
  const words: readonly (readonly [string, RegExp])[] = [
    ["ns", /nanosecond|\bns\b/i],
    ["us", /microsecond|\bus\b|µs/i],
    ["ms", /millisecond|\bms\b/i],
    ["rfc3339", /rfc ?-?3339|iso ?-?8601/i],
    ["s", /\bseconds?\b/i],
  ];
  return words.find(([, said]) => said.test(text))?.[0];
}

function limitLines({ names, known }: AskablePath, taken?: number): DraftLine[] {
  const key = "largest_limit";
  const most = names.limit === undefined ? undefined : known.about?.[names.limit]?.maximum;
  if (most !== undefined && Number.isSafeInteger(most) && most > 0)
    return [{ key, value: `${most}`, why: "the document's maximum" }];
  return taken === undefined ? [] : [{ key, value: unsure(`${taken}`), why: takenLimitWhy }];
}

/** The reason for a guessed limit that a gateway accepted. */
export const takenLimitWhy = "more were refused: look up the largest limit";

function orderOf({ rows }: FoundRows, time: DraftLine | undefined): "descending" | "none" | undefined {
  const field = /from: ([\w.]+),/.exec(time?.value ?? "")?.[1]?.split(".");
  if (field === undefined) return undefined;
  const times = rows.map((row) => {
    const text = scalarText(nodeAt(row, field)) ?? "";
    const unit = likelyUnit(text);
    return unit === undefined ? undefined : instantIn(text, unit);
  });
  const steps = times.slice(1).map((at, index) => Number((at ?? 0n) - (times[index] ?? 0n)));
  const falls = steps.some((step) => step < 0);
  if (!falls) return undefined;
  return steps.some((step) => step > 0) ? "none" : "descending";
}

function pagesOf(found: FoundRows): { readonly value: string; readonly why: string } {
  const { at, told, around, array } = found;
  const { names } = at;
  const rows =
    array === undefined
      ? ({ form: "lines", mediaTypes: [] } as const)
      : ({ form: "array", path: array, mediaTypes: [] } as const);
  const sign = signOfNext(told, around, { rows });
  const total = signOfTotal(told, around, { rows }, found.rows.length);
  const place = total?.isHeader === true ? `{ header: ${scalar(total.where)} }` : scalar(total?.where ?? "");
  const counted = total === undefined ? "" : `, total: ${place}`;
  // if there is a next page, a number that is not greater counts only these rows
  const all = total !== undefined && total.total > found.rows.length ? counted : "";
  if (sign?.by === "link")
    return { value: `{ by: link${all} }`, why: "the answer has a Link to the next page" };
  if (sign !== undefined) {
    const header = /^the header (.*)$/.exec(sign.where)?.[1];
    const next = header === undefined ? scalar(sign.where) : `{ header: ${scalar(header)} }`;
    if (sign.by === "address")
      return { value: `{ by: address, next: ${next}${all} }`, why: "it holds an address" };
    const send = names.cursor === undefined ? unsure(sign.where.split(".").at(-1)) : scalar(names.cursor);
    const why =
      names.cursor === undefined ? "it holds a cursor: say which parameter sends it" : "it holds a cursor";
    return { value: `{ by: cursor, send: ${send}, next: ${next}${all} }`, why };
  }
  if (names.offset !== undefined)
    return {
      value: `{ by: offset, send: ${scalar(names.offset)}${counted} }`,
      why: "by the parameter's name",
    };
  if (names.page !== undefined)
    return { value: `{ by: number, send: ${scalar(names.page)}${counted} }`, why: "by the parameter's name" };
  if (total !== undefined && total.total > found.rows.length) {
    const why = `${total.where} says ${total.total}, but ${found.rows.length} rows came: look up how the gateway pages`;
    const beside = fieldsAround(around, { rows }).map(([where]) => where.split(".").at(-1)!);
    for (const [role, by] of [
      ["offset", "offset"],
      ["page", "number"],
    ] as const) {
      const name = beside.find((one) => parameterRole(one) === role);
      if (name !== undefined) return { value: `{ by: ${by}, send: ${unsure(name)}${counted} }`, why };
    }
    return { value: unsure(undefined), why };
  }
  const empty = emptyNext(around, { rows });
  if (empty !== undefined)
    return {
      value: unsure("none"),
      why: `${empty} is empty here, but may lead to a next page in longer answers`,
    };
  return { value: "none", why: "nothing in the answer looks like a next page" };
}
