/** An ISO time to the minute: `2022-01-01 00:00 UTC`. */
export function minuteText(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")} UTC`;
}
