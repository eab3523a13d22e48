import { RunvaultError } from "../model/error.ts";

// Rows are flat, and a quote inside a JSON string is always escaped, so `{"name":` or `,"name":` is only ever a key.
function fieldPattern(name: string): RegExp {
  return new RegExp(`([{,]\\s*)"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*"|[^,}\\s]+)`);
}

/** The JSON text of a field's value in the text of a row. Throws `malformed_row` if the row has no such field. */
export function fieldText(row: string, name: string): string {
  const value = fieldPattern(name).exec(row)?.[2];
  if (value === undefined)
    throw new RunvaultError("malformed_row", `a row has no field ${name}: ${row.slice(0, 200)}`);
  return value;
}

/** A field's unescaped value, if it is a string or an integer. The row is latin1 text, the value is not. */
export function fieldValue(row: string, name: string): string {
  const text = fieldText(row, name);
  return text.startsWith('"') ? String(JSON.parse(Buffer.from(text, "latin1").toString("utf8"))) : text;
}

/** The row with the JSON text of a field's value replaced; all other bytes stay. */
export function withField(row: string, name: string, json: string): string {
  fieldText(row, name);
  return row.replace(fieldPattern(name), (_match, before: string) => `${before}"${name}":${json}`);
}

export function withoutField(row: string, name: string): string {
  const value = fieldPattern(name).exec(row);
  if (value === null) return row;
  const start = value.index;
  const end = start + value[0].length;
  const opens = value[0].startsWith("{");
  // removing the first field removes the comma after it, any other the comma before it
  return opens ? `{${row.slice(end).replace(/^\s*,/, "")}` : row.slice(0, start) + row.slice(end);
}
