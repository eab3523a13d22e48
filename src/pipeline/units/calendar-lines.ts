import { type CronField, type Cronjob, cronTimes, nextStarts } from "../file/cron.ts";
import { ZoneClock } from "../file/zone-clock.ts";
import { runsOf } from "./cron-text.ts";

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const dayMs = 86_400_000;
/** How far ahead the days are listed on which clocks are put forward. */
const years = 10;

/**
 * A schedule as what systemd's OnCalendar takes, which together elapse when it starts. systemd passes over a time that the
 * clocks leave out in spring, at which a job starts right after: these days are given one by one.
 */
export function calendarLines(job: Cronjob, now: Date): readonly string[] {
  const { minute, hour, day, month, weekday } = cronTimes(job.cron);
  const time = `${listText(hour)}:${listText(minute)}:00 ${job.timezone}`;
  const date = `*-${listText(month)}`;
  const ofWeek = weekday.isAny ? "" : `${weekday.values.map((value) => weekdays[value]).join(",")} `;
  // a day that is either counts
  const lines =
    weekday.isAny || day.isAny
      ? [`${ofWeek}${date}-${listText(day)} ${time}`]
      : [`${date}-${listText(day)} ${time}`, `${ofWeek}${date}-* ${time}`];
  return [...lines, ...putOffStarts(job, now).map((start) => `${start} ${job.timezone}`)];
}

function listText({ values, isAny }: CronField): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return isAny
    ? "*"
    : runsOf(values)
        .map(([from, to]) => (from === to ? two(from) : `${two(from)}..${two(to)}`))
        .join(",");
}

/** The starts of the next years that come right after a time which the clocks leave out, on their clocks. */
export function putOffStarts(job: Cronjob, now: Date): readonly string[] {
  const clock = new ZoneClock(job.timezone);
  const { minute, hour } = cronTimes(job.cron);
  const found: string[] = [];
  let before = clock.offsetMs(now.getTime());
  for (let at = now.getTime(); at < now.getTime() + years * 365.25 * dayMs; at += dayMs) {
    const after = clock.offsetMs(at + dayMs);
    if (after > before) {
      // what is left out is as long as the clocks go forward, and a start in it comes within that time behind it
      const starts = nextStarts(job, 200, new Date(at)).filter((start) => start.getTime() <= at + 2 * dayMs);
      for (const start of starts) {
        const [, hours = "", minutes = ""] = /(\d\d):(\d\d):\d\d$/.exec(clock.text(start.getTime())) ?? [];
        if (!hour.values.includes(Number(hours)) || !minute.values.includes(Number(minutes))) {
          found.push(clock.text(start.getTime()));
        }
      }
    }
    before = after;
  }
  return [...new Set(found)];
}
