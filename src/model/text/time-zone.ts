import { nearestName } from "./nearest-name.ts";

/** What is wrong with a time zone's name, in words; null for nothing. */
export function zoneFault(name: string): string | null {
  // offsets are accepted by the language, but have no daylight saving time
  if (!/^[A-Za-z]/.test(name) || /^(?:GMT|UTC)[+-]/i.test(name)) return "is not the name of a time zone";
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
  } catch {
    return "is not a known time zone";
  }
  // old names are missing from the list below, but are written like the others
  if (!/^[A-Z]/.test(name)) return "is not the exact name of the time zone";
  const rightCase = zoneNames().find((known) => known.toLowerCase() === name.toLowerCase());
  return rightCase === undefined || rightCase === name ? null : "is not the exact name of the time zone";
}

/** The time zone that was probably meant: a similar name, or that of a city; null for none. */
export function nearestZone(name: string): string | null {
  const city = name.toLowerCase().replaceAll(" ", "_");
  const names = zoneNames();
  const ofCity = names.filter((known) => known.toLowerCase().endsWith(`/${city}`));
  return ofCity.length === 1 ? ofCity[0]! : nearestName(name, names);
}

/** The names of time zones, without old synonyms. */
function zoneNames(): readonly string[] {
  return [...Intl.supportedValuesOf("timeZone"), "UTC"];
}
