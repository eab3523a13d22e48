import { formatScaled } from "../../model/fixed-point.ts";
import type { Bar } from "../bars/bars.ts";
import type { BookBreak } from "../books/book-break.ts";
import type { Holding, Ledger } from "../books/ledger.ts";
import { type Nanos, shareOf } from "../books/position.ts";
import type { AccountRows } from "./account-rows.ts";
import type { EventRows } from "./event-rows.ts";
import { randomFrom } from "./random.ts";
import type { RunPlan } from "./run-plan.ts";

/** A transfer is at most 1/20 of the initial deposit; a withdrawal, also of the balance. */
const transferPart = 20n;
const nanosPerCent = 10_000_000n;
/** Transfers are made at least this long after a bar's close, when the bar's orders are done. */
const transferMicros = 41_000_000;
const transferSpanMicros = 10_000_000;
/** One settlement in this many is corrected by an adjustment. */
const adjustedSettlements = 4;

/** An account in one currency, with the instruments that are quoted in it. */
export interface MovedAccount {
  readonly ledger: Ledger;
  readonly rows: AccountRows;
  readonly held: readonly { readonly symbol: string; readonly holding: Holding }[];
}

/** Money that moves other than by trading, with an event for each movement. */
export interface AccountMoves {
  /** Settles funding if due at the bar's close: open positions pay or receive their share, and cash earns interest. */
  settle(bar: Bar): void;
  /** Makes the deposits and withdrawals between a bar and the next. */
  transfer(bar: Bar, index: number): void;
}

export function accountMoves(
  plan: RunPlan,
  accounts: readonly MovedAccount[],
  books: BookBreak,
  events: EventRows,
): AccountMoves {
  const { transfers, fundingMicros } = plan;
  const random = randomFrom(`${plan.seed} moves`);
  const cents = (amount: Nanos): number => Number(amount / nanosPerCent);
  const mostCents = cents((plan.initialCash * 1_000_000_000n) / transferPart);
  // for each account, the bars after which there are transfers, in order; never the last bar
  const due = accounts.map(() =>
    Array.from({ length: transfers }, () => random.below(plan.barCount - 1)).sort((a, b) => a - b),
  );
  const made = accounts.map(() => 0);
  let settled: number | undefined;

  const transferOnce = ({ ledger, rows }: MovedAccount, isDeposit: boolean, closeMicros: number): void => {
    const most = Math.min(mostCents, isDeposit ? mostCents : cents(rows.equity / transferPart));
    const amount = BigInt(1 + random.below(Math.max(1, most))) * nanosPerCent * (isDeposit ? 1n : -1n);
    const micros = closeMicros + transferMicros + random.below(transferSpanMicros);
    ledger.deposit(amount);
    // without the transfer's row, readers and figures count the money as profit
    if (books.at("lose-transfer")) return;
    rows.flow(amount);
    events.account(micros, 0, {
      kind: isDeposit ? "deposit" : "withdrawal",
      message: isDeposit ? "deposit" : "withdrawal",
      amount: formatScaled(amount, 9),
      currency: ledger.currency,
    });
  };

  const settleAccount = ({ ledger, held }: MovedAccount, { closeMicros, closeNanos }: Bar): void => {
    const earn = (
      kind: string,
      message: string,
      amount: Nanos,
      more: { symbol?: string; payload?: object },
    ) => {
      if (amount === 0n) return;
      ledger.earn(amount);
      events.account(closeMicros, closeNanos, {
        kind,
        message,
        amount: formatScaled(amount, 9),
        currency: ledger.currency,
        ...more,
      });
    };
    for (const { symbol, holding } of held) {
      if (holding.lots === 0) continue;
      // hundredths of a basis point of the position's value, from -1 to 3 basis points: longs pay more often than
      // shorts
      const rate = random.below(401) - 100;
      const payload = {
        rate: formatScaled(rate, 6),
        quantity: formatScaled(holding.lots, plan.lotDecimals),
        mark: formatScaled(holding.close, plan.bars.tickDecimals),
      };
      const amount = -shareOf(BigInt(rate))(holding.value);
      earn("funding", `funding of ${symbol}`, amount, { symbol, payload });
      if (random.below(adjustedSettlements) > 0) continue;
      const correction = BigInt(random.below(2_000_000_000) - 1_000_000_000);
      earn("adjustment", `funding of ${symbol} corrected`, correction, { symbol });
    }
    earn("interest", "interest on cash", shareOf(BigInt(1 + random.below(10)))(ledger.mark().cash), {});
  };

  return {
    settle(bar) {
      if (fundingMicros === 0) return;
      const period = Math.floor(bar.closeMicros / fundingMicros);
      if (settled !== undefined && period > settled) {
        for (const account of accounts) settleAccount(account, bar);
      }
      settled = period;
    },
    transfer({ closeMicros }, index) {
      if (transfers === 0) return;
      for (const [number, account] of accounts.entries()) {
        for (; due[number]![made[number]!] === index; made[number]! += 1) {
          transferOnce(account, made[number]! % 2 === 0, closeMicros);
        }
      }
    },
  };
}
