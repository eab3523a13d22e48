import { formatTime, type Nanoseconds, parseTime } from "../../model/time.ts";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `1 Jan 2022`, in UTC. */
export function dayText(ts: Nanoseconds): string {
  const [year = "", month = "", day = ""] = formatTime(ts).slice(0, 10).split("-");
  return `${Number(day)} ${months[Number(month) - 1] ?? month} ${year}`;
}

/** `1 Jan 2022 09:30`, in UTC, with seconds if there are any. */
export function instantText(ts: Nanoseconds): string {
  const time = formatTime(ts).slice(11, 19);
  return `${dayText(ts)} ${time.endsWith(":00") ? time.slice(0, 5) : time}`;
}

/** From one instant to another; a common day is written once. */
export function spanText(from: Nanoseconds, to: Nanoseconds): string {
  const day = dayText(from);
  if (day === dayText(to)) {
    return `${instantText(from)} – ${instantText(to).slice(day.length + 1)} UTC`;
  }
  return `${instantText(from)} – ${instantText(to)} UTC`;
}

/** A text of the figures with its instants in words. */
export function withInstants(text: string): string {
  const instants = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z/g;
  return text.replace(instants, (instant) => `${instantText(parseTime(instant))} UTC`);
}

/** The same as a sentence, with real minus signs. */
export function sentence(text: string): string {
  const shown = withInstants(text).replaceAll(/(?<![\w.-])-(?=\d)/g, "−");
  return `${shown.slice(0, 1).toUpperCase()}${shown.slice(1)}${/[.!?]$/.test(shown) ? "" : "."}`;
}
