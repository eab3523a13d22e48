/** Values through time. As many times as values; times are UNIX milliseconds, rising. NaN is a gap in the line. */
export interface Series {
  readonly times: Float64Array;
  readonly values: Float64Array;
}

/** What every chart may get besides its data. */
interface Noted {
  /** How the figures were computed, in one or two sentences; ends the caption: `Daily closes, 24/7 UTC, P 365.` */
  readonly note?: string;
}

/**
 * The run of the figures. Charts get every run of the page, also those without data, which the caption names. Among
 * several runs each keeps the colour of its number, whichever are drawn.
 */
export interface OfRun {
  /** INSTANCE/RUN. */
  readonly name: string;
  /** Its short name: `[1]`. */
  readonly label: string;
  /** From 1. */
  readonly number: number;
}

/** For `equityChart`. Of several runs, no drawdowns are shaded. */
export interface EquityData extends Noted {
  readonly currency: string;
  readonly runs: readonly EquityRun[];
  /** The worst first; the first five are shaded and numbered. */
  readonly drawdowns: readonly Drawdown[];
}

export interface EquityRun extends OfRun {
  readonly times: Float64Array;
  readonly equity: Float64Array;
  /** At the same times: equity over its running maximum, less one, transfers removed; zero or below. */
  readonly drawdown: Float64Array;
}

export interface Drawdown {
  /** UNIX milliseconds. */
  readonly peak: number;
  readonly trough: number;
  /** Null if it lasts to the end. */
  readonly recovery: number | null;
  /** A ratio, below zero. */
  readonly depth: number;
}

/** For `returnsChart`. One run: a histogram with the normal curve and the VaR lines. Several: outlines. */
export interface ReturnsData extends Noted {
  /** The period of each return, in the singular: `day`, `minute`. */
  readonly period: string;
  readonly runs: readonly ReturnsRun[];
}

export interface ReturnsRun extends OfRun {
  readonly returns: Float64Array;
  /** As returns, below zero; null if there is none. `level` is the share of returns below: 0.05. */
  readonly valueAtRisk: {
    readonly level: number;
    readonly historical: number | null;
    readonly normal: number | null;
    /** CVaR: the mean of the returns beyond. */
    readonly conditional: number | null;
  };
}

/** For `rollingChart`: Sharpe ratio above, volatility beneath. */
export interface RollingData extends Noted {
  /** How many returns a window has, and the period of each: `day`. */
  readonly window: number;
  readonly period: string;
  readonly runs: readonly RollingRun[];
}

export interface RollingRun extends OfRun {
  readonly times: Float64Array;
  /** NaN if there is none. */
  readonly sharpe: Float64Array;
  /** A ratio per year. */
  readonly volatility: Float64Array;
}

/** For `exposureChart`. Steps: a value holds until the next time. */
export interface ExposureData extends Noted {
  /** A currency, or `ratio` where values are shares of equity. */
  readonly unit: string;
  readonly runs: readonly ExposureRun[];
}

export interface ExposureRun extends OfRun {
  readonly times: Float64Array;
  /** Σ |value| and Σ value of all positions. */
  readonly gross: Float64Array;
  readonly net: Float64Array;
}

/** For `excursionsChart`: net P&L of trades against their adverse (MAE) and favourable (MFE) excursions. */
export interface ExcursionsData extends Noted {
  readonly currency: string;
  /** What one trade is: `flat`, `order`, `match`. */
  readonly grouping: string;
  readonly runs: readonly ExcursionsRun[];
}

export interface ExcursionsRun extends OfRun {
  /** Of each trade, in the currency: `mae` zero or below, `mfe` zero or above. NaN: unknown, left out. */
  readonly mae: Float64Array;
  readonly mfe: Float64Array;
  readonly net: Float64Array;
}

/** For `profitChart`: net P&L of trades by a common property. */
export interface ProfitData extends Noted {
  readonly currency: string;
  /** `hour`: keys 0 to 23, of the exit in UTC. `weekday`: keys 1 (Monday) to 7. Missing keys are drawn without a bar. */
  readonly by: "symbol" | "venue" | "side" | "hour" | "weekday";
  readonly runs: readonly (OfRun & { readonly groups: readonly ProfitGroup[] })[];
}

export interface ProfitGroup {
  readonly key: string | number;
  readonly net: number;
  readonly trades: number;
}

/** For `funnelChart`: orders by their last state, which add up to those submitted. */
export interface FunnelData extends Noted {
  readonly runs: readonly (OfRun & {
    /** In the order in which they are drawn: `FILLED`, `CANCELLED`, … */
    readonly states: readonly { readonly state: string; readonly orders: number }[];
  })[];
}

/** For `slippageChart`. */
export interface SlippageData extends Noted {
  readonly runs: readonly (OfRun & { readonly groups: readonly SlippageGroup[] })[];
}

export interface SlippageGroup {
  /** Of the orders: `MARKET`, `LIMIT`, or `MARKET, taker`. */
  readonly type: string;
  /** The reference: `arrival`, `bar`, `mid`. */
  readonly reference: string;
  /** A cost above zero; null if there is no reference. */
  readonly basisPoints: number | null;
  readonly fills: number;
}

/** For `latencyChart`. */
export interface LatencyData extends Noted {
  readonly runs: readonly (OfRun & { readonly groups: readonly LatencyGroup[] })[];
}

export interface LatencyGroup {
  /** The latency measured: `submit to accept`, `submit to first fill`. */
  readonly measure: string;
  /** Of the orders: `MARKET`. */
  readonly type: string;
  readonly orders: number;
  /** Milliseconds. */
  readonly quantiles: {
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
  };
}

/** For `feesChart`. Currencies are kept apart. */
export interface FeesData extends Noted {
  readonly runs: readonly (OfRun & { readonly groups: readonly FeesGroup[] })[];
}

export interface FeesGroup {
  readonly venue: string;
  readonly currency: string;
  /** Paid, zero or above. */
  readonly fees: number;
  /** Received, zero or above. */
  readonly rebates: number;
}

/** For `informationChart`: IC of factors by horizon. */
export interface InformationData extends Noted {
  readonly runs: readonly (OfRun & { readonly factors: readonly InformationFactor[] })[];
}

export interface InformationFactor {
  readonly factor: string;
  readonly horizons: readonly {
    /** In bars. */
    readonly horizon: number;
    /** Null if there is none. */
    readonly ic: number | null;
    /** Standard error; null if there is none. */
    readonly error: number | null;
    /** Of how many values or instants. */
    readonly n: number;
  }[];
}

/** For `quantilesChart`: mean forward return by quantile of a factor. */
export interface QuantilesData extends Noted {
  /** In bars. */
  readonly horizon: number;
  readonly runs: readonly (OfRun & { readonly factors: readonly QuantilesFactor[] })[];
}

export interface QuantilesFactor {
  readonly factor: string;
  readonly quantiles: readonly {
    /** From 1, the lowest values of the factor. */
    readonly quantile: number;
    /** Mean forward return, a ratio; null if there is none. */
    readonly mean: number | null;
    readonly n: number;
  }[];
}

/** For `candlesChart`: bars with the fills among them, one plot per run. */
export interface CandlesData extends Noted {
  readonly runs: readonly CandlesRun[];
}

/** Of one symbol. Without a bar it is not drawn. */
export interface CandlesRun extends OfRun {
  readonly symbol: string;
  readonly bars: {
    /** Their opening, UNIX milliseconds, rising. */
    readonly times: Float64Array;
    readonly intervalMs: number;
    readonly open: Float64Array;
    readonly high: Float64Array;
    readonly low: Float64Array;
    readonly close: Float64Array;
  };
  readonly fills: {
    readonly times: Float64Array;
    readonly prices: Float64Array;
    readonly quantities: Float64Array;
    /** 1 for a buy, 0 for a sell. */
    readonly isBuy: Uint8Array;
  };
}

/** For `eventsChart`. */
export interface EventsData extends Noted {
  readonly runs: readonly (OfRun & { readonly events: readonly RunEvent[] })[];
}

export interface RunEvent {
  /** UNIX milliseconds. */
  readonly time: number;
  readonly kind: string;
  /** `INFO`, `WARNING`, `ERROR` or `CRITICAL`; others are drawn as `INFO`. */
  readonly severity: string;
  readonly message: string;
}
