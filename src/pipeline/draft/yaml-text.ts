/**
 * A text as a one-line YAML value: plain if possible, else in double quotes with escapes for invisible characters. What
 * looks like a variable stays as it is.
 */
export function yamlText(text: string): string {
  const isPlain = plain.test(text) && !text.endsWith(":") && !words.test(text);
  return isPlain ? text : quoted(text.replaceAll("${", () => "$${"));
}

/** A value from the environment of the running job. */
export function yamlVariable(name: string): string {
  return `\${${name}}`;
}

/** Names, paths and addresses that YAML reads as text, also within brackets. */
const plain = /^(?:[A-Za-z]|\.{0,2}\/)[\w./:-]*$/;
const words = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}]/gu, escaped);
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!.toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
}
