import { chatText, type Message, partsOf, titleOf } from "./message.ts";

/** Changes of each kind that a message has room for. */
const mostChanges = 10;
/** Slack refuses a message with a longer text in a block, and a longer header. */
const longestText = 3000;
const longestHeader = 150;

/**
 * A message in the form of Slack's incoming webhooks: a line for notifications, and blocks for people
 * (https://docs.slack.dev/reference/block-kit/blocks).
 */
export function slackMessage(message: Message): object {
  const { changes, foot } = partsOf(message, mostChanges);
  return {
    text: message.text,
    blocks: [
      {
        type: "header",
        text: { type: "plain_text", text: cut(titleOf(message), longestHeader), emoji: false },
      },
      ...changes.map(({ heading, lines }) => ({
        type: "section",
        text: markdown(
          `*${chatText(heading)}*`,
          ...lines.flatMap(({ text, hint }) => [
            `• ${chatText(text)}`,
            ...(hint === null ? [] : [`    ${chatText(hint)}`]),
          ]),
        ),
      })),
      { type: "context", elements: [markdown(chatText(foot))] },
    ],
  };
}

/** As many lines as there is room for; `verbatim` makes no links of names. */
function markdown(...lines: readonly string[]) {
  let text = "";
  for (const line of lines) {
    if (text.length + line.length + 3 > longestText) {
      text += "\n…";
      break;
    }
    text += text === "" ? line : `\n${line}`;
  }
  return { type: "mrkdwn", text, verbatim: true };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
