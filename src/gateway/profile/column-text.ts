import type { ColumnKind } from "../../model/profile/table.ts";
import { int64Max, int64Min } from "../../model/time.ts";

export type Scalar = string | number | boolean;

/** A profile's value as the column's text, or why it does not fit. */
export type ColumnText = { readonly text: string } | { readonly fault: string };

const ranges: Readonly<Record<"uint64" | "int64" | "uint32" | "timestamp", readonly [bigint, bigint]>> = {
  uint64: [0n, (1n << 64n) - 1n],
  uint32: [0n, (1n << 32n) - 1n],
  int64: [int64Min, int64Max],
  timestamp: [int64Min, int64Max],
};

/** The text of a constant or word in a column of this kind, as in a canonical line. */
export function columnText(kind: ColumnKind, value: Scalar): ColumnText {
  switch (kind) {
    case "string":
      return typeof value === "string" ? { text: value } : { fault: "must be text in quotes" };
    case "exact":
      return exactText(value);
    case "double":
      return doubleText(value);
    default:
      return integerText(kind, value);
  }
}

function exactText(value: Scalar): ColumnText {
  const text = String(value);
  if (typeof value === "number" && text.replace(/\D/g, "").length > 15) {
    return { fault: "needs quotes to keep all its digits" };
  }
  if (text === "" && value === "") return { text };
  const [, sign = "", whole = "", decimals = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "") return { fault: 'is not an exact number such as "0.5"' };
  const digits = whole.replace(/^0+(?=\d)/, "");
  const rest = decimals.replace(/0+$/, "");
  const shown = rest === "" ? digits : `${digits}.${rest}`;
  return { text: /[1-9]/.test(shown) ? sign + shown : shown };
}

function doubleText(value: Scalar): ColumnText {
  const isNumber =
    typeof value === "number" ||
    (typeof value === "string" &&
      /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity)$/.test(value) &&
      (Number.isFinite(Number(value)) || /[NI]/.test(value)));
  if (!isNumber) return { fault: "is not a number" };
  const number = Number(value);
  return { text: Object.is(number, -0) ? "-0" : String(number) };
}

function integerText(kind: keyof typeof ranges, value: Scalar): ColumnText {
  const text = String(value);
  if (typeof value === "boolean" || !/^-?\d{1,20}$/.test(text)) {
    return { fault: "is not a whole number" };
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    return { fault: "needs quotes to keep all its digits" };
  }
  const [least, most] = ranges[kind];
  const number = BigInt(text);
  return number < least || number > most
    ? { fault: `is outside the column's range, ${least} to ${most}` }
    : { text: String(number) };
}
