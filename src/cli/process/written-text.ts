import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";

/** A written file, for people or as JSON. */
export function writtenText(
  { file, rows, bytes }: { readonly file: string; readonly rows: number; readonly bytes: number },
  json: boolean,
): string {
  if (json) return JSON.stringify({ file, rows, bytes });
  return `${file}  ${grouped(rows)} ${plural(rows, "row")}, ${byteText(bytes)}`;
}
