import type { Figure } from "../../analytics/figure.ts";
import { figureLabel, figureText, noValue } from "../../analytics/render/figure-text.ts";
import { type Html, html } from "./html.ts";
import { withInstants } from "./time-text.ts";

/** Figures that are a gain above zero and a loss below it. */
const signed =
  /^(?:total_return|return|cagr.*|best_.*|worst_.*|alpha|net_pnl|closed_net_pnl|expectancy|gross_pnl)$/;

/** A figure as people read it, with a sign if it is a gain or a loss; `n/a` if it is missing. */
export function signedText(name: string, figure: Figure): string {
  const told = figureText(name, figure);
  const text = told.endsWith(" %") ? (smallPercent(figure) ?? told) : told;
  if (figure.value === null) return text;
  const above = signed.test(name) && Number(figure.value) > 0 ? "+" : "";
  return `${above}${text}`.replaceAll(/-(?=\d)/g, "−");
}

/** Percentages below 0.1 with two digits, because two decimals would make them all look alike; null for others. */
function smallPercent({ value }: Figure): string | null {
  const percent = Number(value) * 100;
  const size = Math.abs(percent);
  if (size >= 0.1 || size < 1e-9) return null;
  return `${percent.toFixed(1 - Math.floor(Math.log10(size)))} %`;
}

/** The same in its colour. */
export function figureCell(name: string, figure: Figure): Html {
  const text = signedText(name, figure);
  if (figure.value === null) return html`<span class="none">${text}</span>`;
  const value = Number(figure.value);
  if (!signed.test(name) || value === 0) return html`${text}`;
  return html`<span class="${value > 0 ? "gain" : "loss"}">${text}</span>`;
}

/** Why figures are `n/a`, one line per reason; nothing if all are known. */
export function reasonsOf(
  figures: readonly { readonly name: string; readonly of: string; readonly figure: Figure }[],
): readonly string[] {
  const byReason = new Map<string, Set<string>>();
  for (const { name, of, figure } of figures) {
    if (figure.value !== null) continue;
    const names = byReason.get(figure.reason) ?? new Set();
    byReason.set(figure.reason, names.add([figureLabel(name), of].join(" ").trim()));
  }
  return [...byReason].map(
    ([reason, names]) => `${noValue} (${withInstants(reason)}): ${[...names].join("; ")}`,
  );
}
