import { type Message, partsOf, titleOf } from "./message.ts";

/** The text of a mail: a message with all of its changes. */
export function bodyOf(message: Message): string {
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
