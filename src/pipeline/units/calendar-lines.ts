import { type CronField, type Cronjob, cronTimes, nextStarts } from "../file/cron.ts";
import { ZoneClock } from "../file/zone-clock.ts";
import { runsOf } from "./cron-text.ts";

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const dayMs = 86_400_000;
/** How many years of starts at the end of a gap are listed. */
const years = 10;

/**
 * A schedule as values of systemd's OnCalendar. systemd skips times that the clocks skip, but a job starts at the end
 * of the gap; those starts are listed by date.
 */
export function calendarLines(job: Cronjob, now: Date): readonly string[] {
  const { minute, hour, day, month, weekday } = cronTimes(job.cron);
  const time = `${listText(hour)}:${listText(minute)}:00 ${job.timezone}`;
  const date = `*-${listText(month)}`;
  const ofWeek = weekday.isAny ? "" : `${weekday.values.map((value) => weekdays[value]).join(",")} `;
  // a day that matches either field counts
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

/** Starts of the next years at the end of a gap that are not in the schedule themselves, in local time. */
function putOffStarts(job: Cronjob, now: Date): readonly string[] {
  const clock = new ZoneClock(job.timezone);
  return clock
    .putForward(now.getTime(), now.getTime() + years * 365.25 * dayMs)
    .filter((at) => startsAt(job, at) && !startsAt({ ...job, timezone: "UTC" }, at + clock.offsetMs(at)))
    .map((at) => clock.text(at));
}

function startsAt(job: Cronjob, at: number): boolean {
  return nextStarts(job, 1, new Date(at - 1))[0]?.getTime() === at;
}
