import { randomUUID } from "node:crypto";
import { type Message, partsOf, titleOf } from "./message.ts";

/** Bytes of a header's word before it is encoded: encoded, it may have 75 characters. */
const longestWord = 42;

/** A message as a mail, with all of its changes (RFC 5322, with a text in UTF-8). */
export function mailText(
  message: Message,
  { from, to }: { readonly from: string; readonly to: readonly string[] },
): string {
  const headers = [
    `From: ${from}`,
    `To: ${to.join(",\r\n ")}`,
    `Subject: ${encodedWords(titleOf(message))}`,
    `Date: ${new Date(message.at).toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${randomUUID()}@${from.split("@").at(-1)}>`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: base64",
    // no answer of an absent reader is wanted
    "Auto-Submitted: auto-generated",
  ];
  const body = Buffer.from(bodyOf(message), "utf8").toString("base64").replace(/.{76}/g, "$&\r\n");
  return `${headers.join("\r\n")}\r\n\r\n${body.trimEnd()}\r\n`;
}

function bodyOf(message: Message): string {
  const { changes, foot } = partsOf(message, Number.POSITIVE_INFINITY);
  const blocks = [
    `${titleOf(message)}.`,
    ...changes.map(({ heading, lines }) =>
      [
        `${heading}:`,
        ...lines.flatMap(({ text, hint }) => [`- ${text}`, ...(hint === null ? [] : [`  ${hint}`])]),
      ].join("\n"),
    ),
    foot,
  ];
  return `${blocks.join("\n\n")}\n`;
}

/** A header's text, in words of RFC 2047 where it is not all ASCII or too long for a line. */
function encodedWords(text: string): string {
  if (/^[ -~]{1,900}$/.test(text)) return text;
  const words: string[] = [];
  for (const character of text) {
    const last = words.at(-1);
    if (last === undefined || Buffer.byteLength(last + character) > longestWord) words.push(character);
    else words[words.length - 1] = last + character;
  }
  return words.map((word) => `=?utf-8?B?${Buffer.from(word, "utf8").toString("base64")}?=`).join("\r\n ");
}
