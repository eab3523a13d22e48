import { nearestName } from "./nearest-name.ts";

/** What is wrong with the name of a time zone, in words; null where nothing is. */
export function zoneFault(name: string): string | null {
  // an offset is taken by the language, too, but knows no summer time
  if (!/^[A-Za-z]/.test(name) || /^(?:GMT|UTC)[+-]/i.test(name)) return "is not the name of a time zone";
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
  } catch {
    return "is not a known time zone";
  }
  // the old names are not in the list of names below, but are written like the others
  if (!/^[A-Z]/.test(name)) return "is not how the time zone is written";
  const rightCase = zoneNames().find((known) => known.toLowerCase() === name.toLowerCase());
  return rightCase === undefined || rightCase === name ? null : "is not how the time zone is written";
}

/** The time zone that was most likely meant: near by its letters, or the one whose city it is; null where there is none. */
export function nearestZone(name: string): string | null {
  const city = name.toLowerCase().replaceAll(" ", "_");
  const names = zoneNames();
  const ofCity = names.filter((known) => known.toLowerCase().endsWith(`/${city}`));
  return ofCity.length === 1 ? ofCity[0]! : nearestName(name, names);
}

/** The names of time zones, without the old ones that mean the same. */
function zoneNames(): readonly string[] {
  return [...Intl.supportedValuesOf("timeZone"), "UTC"];
}
