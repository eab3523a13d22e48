import { expect, test } from "vitest";
import { z } from "zod";
import type { Trouble } from "../../../src/pipeline/record/job-record.ts";
import { type Message, messageOf, testMessage } from "../../../src/pipeline/tell/message.ts";
import { slackMessage } from "../../../src/pipeline/tell/slack-message.ts";
import { teamsMessage } from "../../../src/pipeline/tell/teams-message.ts";
import { endedJob, failedJob, unprovenFills, worse } from "../../fixtures/tell/ended-job.ts";

/** Troubles as many and as long as a message has them, with all that a chat could take for its own. */
const many = Array.from(
  { length: 40 },
  (_, index): Trouble => ({
    ...unprovenFills,
    key: `table:${index}`,
    text: `${index} <!channel> <https://x|y> & *bold* _it_ @here [a](b) ${"x".repeat(600)}`,
  }),
);
const clean = { scrub: (text: string) => text };
const messages: readonly (readonly [string, Message])[] = [
  [
    "a test",
    testMessage({ job: "nightly", host: "vault-1", tool: "runvault 0.2.0" }, "2026-03-01T02:45:00.000Z"),
  ],
  ["two troubles", messageOf(endedJob({ changes: worse(failedJob, unprovenFills) }), clean)],
  [
    "forty of each kind",
    messageOf(endedJob({ changes: { worse: many, mended: many, reminded: many, troubles: many } }), clean),
  ],
];

// https://docs.slack.dev/reference/block-kit/blocks: keys that a block does not have, and longer texts, are refused
const mrkdwn = z.strictObject({
  type: z.literal("mrkdwn"),
  text: z
    .string()
    .min(1)
    .max(3000)
    // nothing from outside makes a link or calls somebody: these characters are Slack's own
    .regex(/^(?:[^<>&]|&(?:amp|lt|gt);)*$/),
  verbatim: z.literal(true),
});
const slackSchema = z.strictObject({
  text: z.string().min(1).max(40_000),
  blocks: z
    .array(
      z.discriminatedUnion("type", [
        z.strictObject({
          type: z.literal("header"),
          text: z.strictObject({
            type: z.literal("plain_text"),
            text: z.string().min(1).max(150),
            emoji: z.boolean(),
          }),
        }),
        z.strictObject({ type: z.literal("section"), text: mrkdwn }),
        z.strictObject({ type: z.literal("context"), elements: z.array(mrkdwn).min(1).max(10) }),
      ]),
    )
    .min(1)
    .max(50),
});

// https://adaptivecards.io/schemas/1.4.0/adaptive-card.json, as far as it is used
const richText = z.strictObject({
  type: z.literal("RichTextBlock"),
  separator: z.boolean().optional(),
  inlines: z
    .array(
      z.strictObject({
        type: z.literal("TextRun"),
        text: z.string().min(1),
        weight: z.enum(["Default", "Lighter", "Bolder"]).optional(),
        size: z.enum(["Default", "Small", "Medium", "Large", "ExtraLarge"]).optional(),
        isSubtle: z.boolean().optional(),
      }),
    )
    .min(1),
});
const teamsSchema = z.strictObject({
  type: z.literal("message"),
  attachments: z.tuple([
    z.strictObject({
      contentType: z.literal("application/vnd.microsoft.card.adaptive"),
      contentUrl: z.null(),
      content: z.strictObject({
        $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
        type: z.literal("AdaptiveCard"),
        version: z.literal("1.4"),
        fallbackText: z.string().min(1),
        body: z.array(richText).min(1),
      }),
    }),
  ]),
});

test.each(messages)("%s has the form that Slack takes, and says what is wrong", (_, message) => {
  const { blocks } = slackSchema.parse(slackMessage(message));
  const text = JSON.stringify(blocks);
  for (const { text: said } of message.worse.slice(0, 1)) expect(text).toContain(said.slice(0, 1));
  if (message.counts.worse > 20) expect(text).toContain("Worse (40)");
});

test.each(messages)("%s has the form that a Teams workflow takes, and its size", (_, message) => {
  const sent = JSON.stringify(teamsMessage(message));
  const { attachments } = teamsSchema.parse(JSON.parse(sent));
  expect(Buffer.byteLength(sent)).toBeLessThan(28 * 1024);
  const runs = attachments[0].content.body.flatMap(({ inlines }) => inlines.map(({ text }) => text));
  for (const { text, hint } of message.worse.slice(0, 5)) {
    expect(runs).toContain(`${text}\n`);
    expect(runs).toContain(hint);
  }
});
