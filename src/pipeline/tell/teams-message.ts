import { type Message, partsOf, titleOf } from "./message.ts";

/** Changes of each kind that a card shows, fewer where they are too long. */
const mostChanges = 5;
/** Teams takes 28 kB. */
const mostBytes = 25_000;

/**
 * A message in the form of a webhook of Teams' workflows: one Adaptive Card
 * (https://adaptivecards.io/schemas/adaptive-card.json). Text is in runs, which no Markdown is read from.
 */
export function teamsMessage(message: Message): object {
  for (let most = mostChanges; ; most--) {
    const card = cardOf(message, most);
    if (most === 0 || Buffer.byteLength(JSON.stringify(card)) <= mostBytes) return card;
  }
}

function cardOf(message: Message, most: number): object {
  const { changes, foot } = partsOf(message, most);
  const body = [
    rich({ text: titleOf(message), weight: "Bolder", size: "Medium" }),
    ...changes.flatMap(({ heading, lines }) => [
      { ...rich({ text: heading, weight: "Bolder" }), separator: true },
      ...lines.map(({ text, hint }) =>
        hint === null ? rich({ text }) : rich({ text: `${text}\n` }, { text: hint, isSubtle: true }),
      ),
    ]),
    { ...rich({ text: foot, isSubtle: true, size: "Small" }), separator: true },
  ];
  return {
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        contentUrl: null,
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          ...{ type: "AdaptiveCard", version: "1.4", fallbackText: titleOf(message), body },
        },
      },
    ],
  };
}

interface Run {
  readonly text: string;
  readonly weight?: "Bolder";
  readonly size?: "Small" | "Medium";
  readonly isSubtle?: boolean;
}

function rich(...runs: readonly Run[]) {
  return { type: "RichTextBlock", inlines: runs.map((run) => ({ type: "TextRun", ...run })) };
}
