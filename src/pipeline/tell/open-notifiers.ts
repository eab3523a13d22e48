import type { Scrubber } from "../../model/text/scrubber.ts";
import { type Nanoseconds, wallClock } from "../../model/time.ts";
import { hooks, type Job } from "../file/job-schema.ts";
import type { JobPlace } from "../file/job-values.ts";
import { bodyOf } from "./mail-text.ts";
import { type Message, titleOf } from "./message.ts";
import { runCommand } from "./run-command.ts";
import { sendMail } from "./send-mail.ts";
import { sendRequest } from "./send-request.ts";
import { slackMessage } from "./slack-message.ts";
import { teamsMessage } from "./teams-message.ts";
import { type Notifier, type TellContext, type TellLog, type TellTimes, usualTimes } from "./tell-one.ts";
import { below, hideAddress, type WebAddress } from "./web-address.ts";

/** The changes that a recipient is notified of. */
export type Hears = ReadonlySet<"worse" | "mended">;

/** One who gets a message of what changed. */
export interface Listener {
  readonly hears: Hears;
  notifier(message: Message): Notifier;
}

/** Those who are told of a job's executions. */
export interface Notifiers {
  readonly heartbeat: WebAddress | null;
  /** Those who get messages. */
  readonly listeners: readonly Listener[];
  readonly textfile: string | null;
  readonly pushgateway: WebAddress | null;
  readonly times: TellTimes;
  readonly scrubber: Scrubber;
  readonly log: TellLog;
  readonly clock: () => Nanoseconds;
  /** Ends notifications; otherwise only their time limit does. */
  readonly signal: AbortSignal | undefined;
}

export interface NotifiersOptions {
  /** Has the addresses. */
  readonly env: JobPlace["env"];
  /** Learns every address, so that none is printed. */
  readonly scrubber: Scrubber;
  readonly log: TellLog;
  /** Default: the clock of this machine. */
  readonly clock?: () => Nanoseconds;
  readonly signal?: AbortSignal;
  readonly times?: Partial<TellTimes>;
}

/** The notifiers of a job file. Sends nothing yet. */
export function openNotifiers(
  { name, notify, metrics }: Pick<Job, "name" | "notify" | "metrics">,
  { env, scrubber, log, clock = wallClock, signal, times }: NotifiersOptions,
): Notifiers {
  const address = (words: string, from: string, written: string | undefined): WebAddress | null => {
    const url = URL.parse(written ?? "");
    if (url === null) return null;
    const found = { words, from, url };
    hideAddress(scrubber, written ?? "", found);
    return found;
  };
  const ofVariable = (words: string, variable: string | undefined) =>
    variable === undefined ? null : address(words, `the variable ${variable}`, env[variable]);
  const { heartbeat, command, mail } = notify;
  const forms = {
    webhook: {
      words: "the webhook",
      notifier: (to: WebAddress) => postNotifier("webhook", to, (message) => message),
    },
    slack: {
      words: "Slack's webhook",
      notifier: (to: WebAddress) => postNotifier("slack", to, slackMessage),
    },
    teams: {
      words: "the Teams workflow",
      notifier: (to: WebAddress) => postNotifier("teams", to, teamsMessage),
    },
    mail: { words: "the mail server", notifier: (to: WebAddress) => mailNotifier(to, mail!) },
  };
  const listeners = hooks.flatMap((hook): Listener[] => {
    const { words, notifier } = forms[hook];
    const to = ofVariable(words, notify[hook]?.url_env);
    return to === null ? [] : [{ hears: new Set(notify[hook]!.on), notifier: notifier(to) }];
  });
  if (command !== undefined) {
    const notifier = (message: Message) => commandNotifier(command, message, { scrubber, log });
    listeners.push({ hears: new Set(["worse", "mended"]), notifier });
  }
  const push = address("the Pushgateway", "metrics.pushgateway", metrics?.pushgateway);
  return {
    heartbeat: ofVariable("the heartbeat", heartbeat?.url_env),
    listeners,
    textfile: metrics?.textfile ?? null,
    pushgateway: push === null ? null : below(push, `metrics/job/${name}`),
    ...{ times: { ...usualTimes, ...times }, scrubber, log, clock, signal },
  };
}

/** A heartbeat notifier: an execution began, or how it ended. */
export function heartbeatNotifier(address: WebAddress, beat: "start" | "done" | "fail"): Notifier {
  const to = beat === "done" ? address : below(address, beat);
  return web("heartbeat", to, (signal) => sendRequest(to, { method: "GET" }, signal));
}

/** Those who get a message as JSON, in a form of their own. */
function postNotifier(to: Notifier["to"], address: WebAddress, formOf: (message: Message) => object) {
  return (message: Message): Notifier => {
    const sent = { method: "POST", body: JSON.stringify(formOf(message)), type: "application/json" } as const;
    return web(to, address, (signal) => sendRequest(address, sent, signal));
  };
}

function mailNotifier(address: WebAddress, { from, to }: NonNullable<Job["notify"]["mail"]>) {
  return (message: Message): Notifier => {
    const mail = { from, to, date: new Date(message.at), subject: titleOf(message), text: bodyOf(message) };
    return web("mail", address, (signal) => sendMail(address, mail, signal));
  };
}

/** A Pushgateway notifier with its metrics; the Pushgateway keeps metrics that are not among them. */
export function pushgatewayNotifier(address: WebAddress, body: string): Notifier {
  const sent = { method: "POST", body, type: "text/plain; version=0.0.4; charset=utf-8" } as const;
  return web("pushgateway", address, (signal) => sendRequest(address, sent, signal));
}

/** A command that is to have a message. What it prints goes to the log. */
function commandNotifier(
  command: readonly string[],
  message: Message,
  { scrubber, log }: Pick<TellContext, "scrubber" | "log">,
): Notifier {
  return {
    to: "command",
    slow: {
      what: "the command did not end",
      hint: "It was killed with everything it had started; have it hand longer work to another process.",
    },
    attempt: async (signal) => {
      const { output, error } = await runCommand(command, `${JSON.stringify(message)}\n`, signal);
      if (output !== "") log.info({ to: "command", output: scrubber.scrub(output) }, "the command printed");
      if (error !== null) throw error;
    },
  };
}

function web(to: Notifier["to"], { words, from }: WebAddress, attempt: Notifier["attempt"]): Notifier {
  return {
    to,
    slow: {
      what: `${words} did not answer`,
      hint: `Check whether it is overloaded or behind a firewall; check ${from}.`,
    },
    attempt,
  };
}
