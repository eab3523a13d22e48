import { z } from "zod";
import { globFault } from "../../model/text/glob.ts";
import { millisecondsOf } from "../../model/text/quantity.ts";
import { contractKinds } from "./instrument.ts";

const name = (must: string) => z.string({ error: must }).min(1, "must not be empty");

const pattern = (must: string) =>
  name(must).superRefine((value, context) => {
    const fault = globFault(value);
    if (fault !== null) context.addIssue({ code: "custom", message: fault, input: value });
  });

const mustBeDecimal = "must be a decimal number above zero, such as 1, 0.01 or 100";

/** Digits that every double keeps exactly. */
const sureDigits = 15;

/** An exact decimal: a number of YAML as long as a double holds all of its digits, or a text. */
const decimal = z
  .union([z.number(), z.string()], { error: mustBeDecimal })
  .transform((value, context): string => {
    const text = String(value);
    const raise = (message: string, hint?: string) => {
      context.addIssue({
        code: "custom",
        message,
        input: value,
        ...(hint === undefined ? {} : { params: { hint } }),
      });
      return z.NEVER;
    };
    if (typeof value === "number" && /e|^\d{16}/.test(text)) {
      return raise(mustBeDecimal, 'Write all of its digits, in quotes: "0.0000001".');
    }
    if (!/^\d{1,18}(?:\.\d{1,18})?$/.test(text) || /^[0.]+$/.test(text)) return raise(mustBeDecimal);
    if (typeof value === "number" && text.replace(".", "").replace(/^0+/, "").length > sureDigits) {
      return raise("has more digits than a YAML number can safely hold", "Put it in quotes.");
    }
    return text;
  });

const mustBeInterval = "must be the length of a bar with its unit, such as 1m, 5m, 1h or 1d";

const interval = name(mustBeInterval).transform((value, context): bigint => {
  const ms = millisecondsOf(value);
  if (ms > 0) return BigInt(ms) * 1_000_000n;
  context.addIssue({ code: "custom", message: mustBeInterval, input: value });
  return z.NEVER;
});

const barsSchema = z
  .strictObject(
    {
      symbol: name("must be the symbol of its bars")
        .optional()
        .describe("the symbol of its bars; default: its own")
        .meta({ examples: ["BTCUSDT"] }),
      venue: name("must be a venue")
        .optional()
        .describe("the venue of its bars; default: the only one that has bars of that symbol")
        .meta({ examples: ["BINANCE"] }),
      interval: interval
        .optional()
        .describe("the length of its bars; default: the only one available")
        .meta({ examples: ["1m"] }),
    },
    { error: "must be a map with symbol, venue or interval" },
  )
  .describe("which bars are its own")
  .meta({ examples: [{ symbol: "BTCUSDT", venue: "BINANCE" }] });

const entrySchema = z
  .strictObject(
    {
      symbol: pattern("must be a symbol, or a pattern with * and ?")
        .describe("the symbol, or a pattern in which * is any text and ? one character")
        .meta({ examples: ["BTCUSD-PERP"] }),
      venue: pattern("must be a venue, or a pattern with * and ?")
        .default("*")
        .describe("the venue of the fills, or a pattern; default: any")
        .meta({ examples: ["DERIBIT"] }),
      currency: name("must be a currency")
        .optional()
        .describe("the currency that profit and loss come in; default: the only one of the run's equity rows")
        .meta({ examples: ["USD"] }),
      multiplier: decimal
        .default("1")
        .describe(
          "units of the underlying, or for an inverse contract of the quote currency, in one unit of quantity; exact",
        )
        .meta({ examples: [100] }),
      kind: z
        .enum(contractKinds, { error: "must be linear or inverse" })
        .default("linear")
        .describe(
          "linear: worth price × multiplier. inverse: worth -multiplier / price, in the base currency",
        )
        .meta({ examples: ["inverse"] }),
      bars: barsSchema.optional(),
    },
    { error: "must be a map, such as { symbol: BTCUSD, multiplier: 100 }" },
  )
  .describe("what the rows do not say about the instruments that its symbol and venue match");

/** An instruments file: the first entry that matches a symbol and its venue counts. */
export const instrumentsSchema = z
  .array(entrySchema, {
    error: "must be a list of instruments, each `- symbol: NAME` with its properties",
  })
  .min(1, "must have at least one entry");

export type InstrumentEntry = Readonly<z.output<typeof entrySchema>>;
