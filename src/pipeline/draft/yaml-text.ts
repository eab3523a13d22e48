/**
 * A text as a value of a job file, in one line: without quotes where it needs none, else in double quotes, with escapes for
 * what is not seen. What looks like a variable in it stays as it is.
 */
export function yamlText(text: string): string {
  const isPlain = plain.test(text) && !text.endsWith(":") && !words.test(text);
  return isPlain ? text : quoted(text.replaceAll("${", () => "$${"));
}

/** A value that the environment gives when the job runs. */
export function yamlVariable(name: string): string {
  return `\${${name}}`;
}

/** Names, paths and addresses that YAML reads as texts, also within brackets. */
const plain = /^(?:[A-Za-z]|\.{0,2}\/)[\w./:-]*$/;
const words = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}]/gu, escaped);
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!.toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
}
