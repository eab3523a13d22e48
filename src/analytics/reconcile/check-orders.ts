import type { DuckDBConnection } from "@duckdb/node-api";
import {
  commonDecimal,
  copyExact,
  decimalSql,
  exactValues,
  int32s,
  int64s,
  uint64s,
} from "../../duckdb/exact-vector.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import { formatScaled } from "../../model/fixed-point.ts";
import { exactType } from "../../model/profile/exact-types.ts";
import { countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { BooksSource } from "./books-source.ts";
import { size } from "./break-log.ts";
import { type Break, type Finding, mostBreaks } from "./reconcile-report.ts";

const kinds = [
  "SUBMITTED",
  "ACCEPTED",
  "REJECTED",
  "PARTIALLY_FILLED",
  "CANCEL_REQUESTED",
  "FILLED",
  "CANCELED",
  "EXPIRED",
] as const;
type Kind = (typeof kinds)[number];

const working: readonly Kind[] = ["PARTIALLY_FILLED", "CANCEL_REQUESTED", "FILLED", "CANCELED", "EXPIRED"];
/** The steps that may follow each step, by the interface. */
const next: Readonly<Record<Kind, readonly Kind[]>> = {
  SUBMITTED: ["REJECTED", "ACCEPTED"],
  ACCEPTED: working,
  PARTIALLY_FILLED: working,
  CANCEL_REQUESTED: working,
  REJECTED: [],
  FILLED: [],
  CANCELED: [],
  EXPIRED: [],
};

/** Steps after which part of the order is not filled. */
const leavesSome: ReadonlySet<Kind> = new Set(["PARTIALLY_FILLED", "CANCELED", "EXPIRED"]);

const formula =
  "Σ quantity of an order's fills = filled_quantity; |average_price × filled_quantity - Σ price × quantity| ≤ filled_quantity × 0.0000000005; " +
  "no filled_quantity before its fills, and none twice by its trade_id; SUBMITTED, then REJECTED or ACCEPTED, then fills and requests to cancel, then FILLED, CANCELED or EXPIRED";

/** Check 6: the steps of orders against each other and against their fills, order by order, in exact integers. */
export async function checkOrders(source: BooksSource): Promise<Finding> {
  const { connection, run, exactTypes, lacking } = source;
  const log = new OrderLog();
  const missing = (["orders", "fills"] as const).flatMap((table) => lacking(table) ?? []);
  if (missing.length > 0) return log.finding(missing);
  await source.showOnly("orders", run);
  await source.showOnly("fills", run);
  const [orders, fills] = [exactTypes("orders"), exactTypes("fills")];
  const quantityType = commonDecimal([
    exactType(orders, "quantity"),
    exactType(orders, "filled_quantity"),
    exactType(fills, "quantity"),
  ]);
  const priceType = commonDecimal([exactType(orders, "average_price"), exactType(fills, "price")]);
  const [quantity, price] = [decimalSql(quantityType), decimalSql(priceType)];
  const scope = "hash(account, portfolio, symbol, side)";
  const kindCode = `CASE kind ${kinds.map((kind, index) => `WHEN '${kind}' THEN ${index}`).join(" ")} ELSE -1 END`;
  // the venue's name of the order; 0 if unknown
  const venueName =
    "CAST(CASE WHEN coalesce(venue_order_id, '') = '' THEN 0 ELSE hash(venue_order_id) >> 33 END AS INTEGER)";
  // a request to cancel leaves the order pending; every other step is also its status
  const isStatus = "status = CASE kind WHEN 'CANCEL_REQUESTED' THEN 'PENDING_CANCEL' ELSE kind END";
  const rows = `
    SELECT client_order_id AS id, ts_event, seq, '' AS trade_id, ${venueName} AS venue_name, 0 AS is_fill, ${kindCode} AS kind, ${isStatus} AS is_status,
           ts_init < ts_event AS is_backwards, ${scope} AS scope,
           CAST(coalesce(quantity, 0) AS ${quantity}) AS quantity, CAST(coalesce(filled_quantity, 0) AS ${quantity}) AS filled,
           CAST(coalesce(average_price, 0) AS ${price}) AS price
    FROM orders
    UNION ALL
    SELECT client_order_id, ts_event, seq, trade_id, ${venueName}, 1, -1, true, ts_init < ts_event, ${scope},
           CAST(coalesce(quantity, 0) AS ${quantity}), CAST(0 AS ${quantity}), CAST(coalesce(price, 0) AS ${price})
    FROM fills`;
  const counted = await connection.runAndReadAll(
    "SELECT count(*), epoch_ns(max(ts_event)) FROM (SELECT ts_event FROM orders UNION ALL SELECT ts_event FROM fills)",
  );
  const [rowCount, newest] = counted.getRows()[0]!;
  const count = Number(rowCount);
  // a backtest may give its start by the wall clock, and its events by the market's
  const isOtherClock = source.started !== null && newest !== null && BigInt(String(newest)) < source.started;
  // fills of one instant as they were booked: T9 before T10
  const order = "id, ts_event, is_fill, length(trade_id), trade_id, seq";
  const sql = `
    SELECT ts_event, seq, CAST(is_fill AS INTEGER), CAST(kind AS INTEGER), CAST(is_status AS INTEGER), CAST(is_backwards AS INTEGER),
           CAST(id IS DISTINCT FROM lag(id) OVER w OR lag(seq) OVER w IS NULL AS INTEGER),
           CAST(scope IS DISTINCT FROM lag(scope) OVER w AS INTEGER), venue_name, quantity, filled, price
    FROM (${rows}) WINDOW w AS (ORDER BY ${order}) ORDER BY ${order}`;
  const lives = new OrderLife(log, {
    ...{ quantityScale: quantityType.scale, priceScale: priceType.scale },
    ...{ started: isOtherClock ? null : source.started, doubles: await readDoubles(connection) },
  });
  for await (const chunk of countedStream(await connection.stream(sql), count)) {
    const [ts, seq] = [int64s(chunk, 0), uint64s(chunk, 1)];
    const [isFill, kind, isStatus, isBackwards, begins, isOther, venueNames] = [2, 3, 4, 5, 6, 7, 8].map(
      (column) => int32s(chunk, column),
    ) as [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
    const [quantities, filled] = [
      exactValues(quantityType, chunk.rows),
      exactValues(quantityType, chunk.rows),
    ];
    const prices = exactValues(priceType, chunk.rows);
    copyExact(chunk, 9, quantities, 0);
    copyExact(chunk, 10, filled, 0);
    copyExact(chunk, 11, prices, 0);
    for (let row = 0; row < chunk.rows; row++) {
      if (begins[row] === 1) lives.end();
      const at = {
        table: isFill[row] === 1 ? "fills" : "orders",
        ts: ts[row]!,
        seq: seq[row]!,
        venueName: venueNames[row]!,
      } as const;
      const isForeign = begins[row] === 0 && isOther[row] === 1;
      if (isFill[row] === 1)
        lives.fill(at, quantities[row]!, prices[row]!, isForeign, isBackwards[row] === 1);
      else {
        const own = kinds[kind[row]!] ?? null;
        const step = { kind: own, quantity: quantities[row]!, filled: filled[row]!, average: prices[row]! };
        lives.step(at, step, isForeign || isStatus[row] === 0, isBackwards[row] === 1);
      }
    }
  }
  lives.end();
  log.rows = count;
  const found = log.finding([]);
  return isOtherClock ? { ...found, notes: [...found.notes, otherClock] } : found;
}

const otherClock =
  "every row is older than the start of the run, so that start is assumed to come from another clock";

/** The seqs of fills with the same trade as an earlier fill of that account, market and side. */
async function readDoubles(connection: DuckDBConnection): Promise<ReadonlySet<bigint>> {
  const trade = "hash(account, portfolio, venue, symbol, side, trade_id)";
  const found = await connection.runAndReadAll(`
    WITH twice AS MATERIALIZED (
      SELECT ${trade} AS trade FROM fills WHERE trade_id <> '' GROUP BY ALL HAVING count(*) > 1
    )
    SELECT seq FROM fills WHERE ${trade} IN (FROM twice)
    QUALIFY row_number() OVER (PARTITION BY ${trade} ORDER BY ts_event, seq) > 1`);
  return new Set(found.getRows().map(([seq]) => BigInt(String(seq))));
}

interface Row {
  readonly table: "orders" | "fills";
  readonly ts: bigint;
  readonly seq: bigint;
  /** A number for the venue's name of the order; 0 if unknown. */
  readonly venueName: number;
}

type OwnRow = Pick<Row, "table" | "seq">;

interface Step {
  readonly kind: Kind | null;
  readonly quantity: bigint;
  readonly filled: bigint;
  readonly average: bigint;
}

class OrderLog {
  rows = 0;
  /** Quantities and averages between fills of one instant in unclear order. */
  unsure = 0;
  #breaks = 0;
  #largest: { readonly size: bigint; readonly text: string } | null = null;
  readonly #first: Break[] = [];
  readonly #kinds = new Map<string, number>();

  /** `own` has the rows of the order; the one at fault is listed last. */
  add(what: string, at: Row, own: readonly OwnRow[], difference: Difference | null): void {
    this.#breaks++;
    this.#kinds.set(what, (this.#kinds.get(what) ?? 0) + 1);
    const amount = difference === null ? null : formatScaled(difference.value, difference.scale);
    if (difference !== null) {
      const common = size(difference.value) * 10n ** BigInt(commonScale - difference.scale);
      if (this.#largest === null || common > this.#largest.size)
        this.#largest = { size: common, text: amount! };
    }
    if (this.#first.length === mostBreaks) return;
    const others = own.filter(({ table, seq }) => table !== at.table || seq !== at.seq);
    const rows = [...others, at];
    const listed = rows.slice(-12).map(({ table, seq }) => ({ table, seq: String(seq) }));
    const unit = difference?.unit ?? "";
    this.#first.push({
      at: formatTime(at.ts),
      amount,
      unit,
      what,
      rows: listed,
      moreRows: rows.length - listed.length,
    });
  }

  finding(unchecked: readonly string[]): Finding {
    const notes = [...this.#kinds].map(([what, count]) => `${count} × ${what}`);
    const largest = this.#largest?.text ?? null;
    const found = { rows: this.rows, breaks: this.#breaks, largest, notes, first: this.#first };
    const unsure =
      this.unsure === 0
        ? []
        : [
            `${countText(this.unsure, "row")} of orders with a filled quantity or average price between fills with the same timestamp, whose order no trade id shows`,
          ];
    return {
      ...{ number: 6, name: "orders against fills", formula, ...found },
      unchecked: [...unchecked, ...unsure],
    };
  }
}

interface Difference {
  readonly value: bigint;
  readonly scale: number;
  readonly unit: string;
}

/** More decimals than any price × quantity has. */
const commonScale = 90;

interface Instant {
  readonly ts: bigint;
  fills: number;
  /** The quantity filled after its last fill. */
  filled: bigint;
}

/** Facts for checking orders, besides their rows. */
interface OrderFacts {
  readonly quantityScale: number;
  readonly priceScale: number;
  /** When the run began; null if unknown. */
  readonly started: bigint | null;
  /** Fills, by their seqs, that repeat a trade of another. */
  readonly doubles: ReadonlySet<bigint>;
}

/** One order at a time, by its rows in key order. */
class OrderLife {
  readonly #log: OrderLog;
  readonly #quantityScale: number;
  readonly #priceScale: number;
  readonly #started: bigint | null;
  readonly #doubles: ReadonlySet<bigint>;
  #rows: OwnRow[] = [];
  #lastStep: (Row & Step) | null = null;
  #accepted: Row | null = null;
  #ended: Row | null = null;
  #firstFill: Row | null = null;
  #traded = 0n;
  #turnover = 0n;
  /** Fills of the order that repeat another fill's trade. */
  #doubled: Row[] = [];
  /** What the venue has called it so far. */
  readonly #venueNames = new Set<number>();
  /** The value of the quantity filled so far, with which intermediate averages are compared. */
  #steps: (Row & Step)[] = [];
  readonly #turnovers = new Map<bigint, { readonly turnover: bigint; readonly instant: Instant }>();
  /** The instants at which it was filled, in order, with the quantity filled after the last fill of each. */
  #instants: Instant[] = [];

  constructor(log: OrderLog, { quantityScale, priceScale, started, doubles }: OrderFacts) {
    this.#log = log;
    this.#quantityScale = quantityScale;
    this.#priceScale = priceScale;
    this.#started = started;
    this.#doubles = doubles;
  }

  fill(at: Row, quantity: bigint, price: bigint, isForeign: boolean, isBackwards: boolean): void {
    this.#take(at, isBackwards);
    if (isForeign) this.#tell("account, portfolio, symbol or side differs from the order's other rows", at);
    if (at.venueName !== 0 && this.#venueNames.size > 0 && !this.#venueNames.has(at.venueName))
      this.#tell("venue_order_id differs from the order's", at);
    if (this.#ended !== null && at.ts > this.#ended.ts) this.#tell("fill after the order ended", at);
    if (this.#doubles.has(at.seq)) this.#doubled.push(at);
    this.#firstFill ??= at;
    this.#traded += quantity;
    this.#turnover += quantity * price;
    const last = this.#instants.at(-1);
    const instant = last?.ts === at.ts ? last : { ts: at.ts, fills: 0, filled: 0n };
    if (instant !== last) this.#instants.push(instant);
    instant.fills++;
    instant.filled = this.#traded;
    // a fill with zero quantity leads to the same total as before
    if (quantity !== 0n || !this.#turnovers.has(this.#traded))
      this.#turnovers.set(this.#traded, { turnover: this.#turnover, instant });
  }

  step(at: Row, step: Step, isOdd: boolean, isBackwards: boolean): void {
    this.#take(at, isBackwards);
    const { kind, filled } = step;
    const before = this.#lastStep;
    if (kind === null) this.#tell("unknown kind of step", at);
    else {
      const isAllowed =
        before === null ? kind === "SUBMITTED" : before.kind === null || next[before.kind].includes(kind);
      if (!isAllowed) this.#tell(`${kind} after ${before?.kind ?? "nothing"}`, at);
      if (kind === "ACCEPTED") this.#accepted = at;
      if (next[kind].length === 0) this.#ended = at;
    }
    if (isOdd)
      this.#tell("status, account, portfolio, symbol or side does not match the order's other rows", at);
    if (before !== null && filled < before.filled)
      this.#tell("filled_quantity falls", at, this.#quantity(filled - before.filled));
    if (before !== null && before.quantity !== step.quantity)
      this.#tell("quantity of the order changes", at, this.#quantity(step.quantity - before.quantity));
    if (filled > step.quantity)
      this.#tell("more filled than ordered", at, this.#quantity(filled - step.quantity));
    if (kind === "FILLED" && filled !== step.quantity)
      this.#tell("FILLED, but only in part", at, this.#quantity(filled - step.quantity));
    if (kind !== null && leavesSome.has(kind) && filled !== 0n && filled === step.quantity)
      this.#tell(`${kind}, but filled completely`, at);
    if (at.venueName !== 0) this.#venueNames.add(at.venueName);
    this.#lastStep = { ...at, ...step };
    this.#steps.push(this.#lastStep);
  }

  /** The order has no more rows. */
  end(): void {
    const last = this.#lastStep;
    if (last === null && this.#firstFill !== null)
      this.#tell("fills without an order", this.#firstFill, this.#quantity(this.#traded));
    else if (last !== null) {
      if (last.filled !== this.#traded) {
        const what =
          this.#traded === 0n
            ? "filled_quantity without fills"
            : "filled_quantity differs from that of the fills";
        this.#tell(what, last, this.#quantity(last.filled - this.#traded));
      }
      if (this.#accepted !== null && this.#firstFill !== null && this.#firstFill.ts < this.#accepted.ts) {
        this.#tell("fill before acceptance", this.#firstFill);
      }
      const isWhole = last.filled === this.#traded;
      for (const step of this.#steps) this.#averageOf(step, isWhole);
      // a wrong quantity is reported elsewhere
      if (isWhole) for (const fill of this.#doubled) this.#tell("trade_id of another fill", fill);
    }
    this.#rows = [];
    this.#steps = [];
    this.#doubled = [];
    this.#venueNames.clear();
    this.#turnovers.clear();
    this.#instants = [];
    this.#lastStep = this.#accepted = this.#ended = this.#firstFill = null;
    this.#traded = this.#turnover = 0n;
  }

  #averageOf(step: Row & Step, isWhole: boolean): void {
    if (step.filled === 0n) {
      if (step.average !== 0n) this.#tell("average price without fills", step);
      return;
    }
    const sum = this.#turnovers.get(step.filled);
    if (sum === undefined) {
      // if the order's own end differs from the fills', that is reported, and may be the reason
      if (isWhole) this.#tellFilled(step);
      return;
    }
    if (isWhole && sum.instant.ts > step.ts) this.#tell("filled_quantity before its fills", step);
    const off = step.average * step.filled - sum.turnover;
    if (size(off) * 10n ** 10n > step.filled * 5n * 10n ** BigInt(this.#priceScale)) {
      // between fills of one instant, the result depends on their order, which trade ids need not give
      if (sum.instant.filled !== step.filled) {
        this.#log.unsure++;
        return;
      }
      const scale = this.#priceScale + this.#quantityScale;
      this.#tell("average_price differs from that of the fills", step, {
        value: off,
        scale,
        unit: "price × quantity",
      });
    }
  }

  /** An intermediate quantity that the fills never reach, unless they might in another order. */
  #tellFilled(step: Row & Step): void {
    let [from, to] = [0, this.#instants.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#instants[middle]!.filled < step.filled) from = middle + 1;
      else to = middle;
    }
    const instant = this.#instants[from];
    if (instant !== undefined && instant.fills > 1) this.#log.unsure++;
    else
      this.#tell(
        "filled_quantity matches no sum of the fills",
        step,
        instant === undefined ? null : this.#quantity(step.filled - instant.filled),
      );
  }

  #take(at: Row, isBackwards: boolean): void {
    this.#rows.push({ table: at.table, seq: at.seq });
    if (isBackwards) this.#tell("ts_init before ts_event", at);
    if (this.#started !== null && at.ts < this.#started) this.#tell("before the run began", at);
  }

  #quantity(value: bigint): Difference {
    return { value, scale: this.#quantityScale, unit: "units" };
  }

  #tell(what: string, at: Row, difference: Difference | null = null): void {
    this.#log.add(what, at, this.#rows, difference);
  }
}
