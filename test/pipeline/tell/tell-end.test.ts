import { mkdtemp, open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createScrubber } from "../../../src/model/text/scrubber.ts";
import { toldLineSchema } from "../../../src/pipeline/record/job-record.ts";
import { messageSchema } from "../../../src/pipeline/tell/message.ts";
import { tellChanges } from "../../../src/pipeline/tell/tell-changes.ts";
import { tellEnd } from "../../../src/pipeline/tell/tell-end.ts";
import { tellStart } from "../../../src/pipeline/tell/tell-start.ts";
import {
  endAt,
  endedJob,
  failedJob,
  type NamedNotifiers,
  notifiersOf,
  quick,
  unprovenFills,
  worse,
} from "../../fixtures/tell/ended-job.ts";
import { answers, answerText, type Manners, Receiver } from "../../fixtures/tell/receiver.ts";

const secretPath = "/services/T024F/5ecretHook9/Zq8";

let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "tell-"));
});

interface Trial {
  readonly manners: Manners;
  /** Attempts and code of the line; null: done. */
  readonly attempts: number;
  readonly code: string | null;
  readonly requests?: number;
}

const drip = (socket: Parameters<Manners>[0], text: string) => {
  socket.write(text);
  const timer = setInterval(() => socket.write("x"), 20);
  socket.on("close", () => clearInterval(timer));
};

const trials: Record<string, Trial> = {
  "answers at once": { manners: answers(200), attempts: 1, code: null },
  "is slow": {
    manners: (socket) => void setTimeout(() => socket.end(answerText(204)), 150),
    attempts: 1,
    code: null,
  },
  "answers 500 each time": { manners: answers(500), attempts: 3, code: "server_error" },
  "answers 500 once": {
    manners: (socket, _, number) => socket.end(answerText(number === 1 ? 500 : 200)),
    attempts: 2,
    code: null,
  },
  "redirects to another place": {
    manners: answers(302, { location: "/elsewhere" }),
    attempts: 1,
    code: "refused",
    requests: 1,
  },
  "redirects for good": { manners: answers(308, { location: "/elsewhere" }), attempts: 1, code: "refused" },
  "no longer has the address": { manners: answers(404), attempts: 1, code: "refused" },
  "wants an hour of peace": {
    manners: answers(429, { "retry-after": "3600" }),
    attempts: 3,
    code: "rate_limited",
  },
  "never answers": { manners: () => {}, attempts: 3, code: "timeout" },
  "trickles the head of its answer": {
    manners: (socket) => drip(socket, "HTTP/1.1 200 OK\r\nx-more: "),
    attempts: 3,
    code: "timeout",
  },
  "sends 103 for ever": {
    manners: (socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 20);
      socket.on("close", () => clearInterval(timer));
    },
    attempts: 3,
    code: "timeout",
  },
  "closes without an answer": { manners: (socket) => socket.destroy(), attempts: 3, code: "unreachable" },
  "closes in the head of its answer": {
    manners: (socket) => socket.end("HTTP/1.1 200 O"),
    attempts: 3,
    code: "unreachable",
  },
  "does not speak HTTP": { manners: (socket) => socket.end("220 mail\r\n"), attempts: 1, code: "refused" },
  // a status of success is all that counts
  "trickles what follows its answer": {
    manners: (socket) => drip(socket, "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"),
    attempts: 1,
    code: null,
  },
  "closes in the middle of its answer": {
    manners: (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok"),
    attempts: 1,
    code: null,
  },
  "says its own address in what it answers": {
    manners: (socket, { target }) =>
      socket.end(`HTTP/1.1 403 ${target}\r\nconnection: close\r\nx-from: ${target}\r\n\r\n${target}`),
    attempts: 1,
    code: "refused",
  },
};

describe("a webhook that", () => {
  test.each(Object.entries(trials))("%s", async (_, { manners, attempts, code, requests = attempts }) => {
    await using receiver = await Receiver.open(manners);
    const { notifiers, logged } = notifiersOf(
      { webhook: `${receiver.url}${secretPath}?key=hunter2` },
      code === "timeout" ? { ...quick, attemptMs: 300 } : quick,
    );
    const end = await tellEnd(notifiers, endedJob());
    expect(end.told).toEqual([
      expect.objectContaining({ to: "webhook", result: code === null ? "done" : "failed", attempts }),
    ]);
    expect(end.told[0]!.error?.code ?? null).toBe(code);
    expect(receiver.received).toHaveLength(requests);
    expect(receiver.targets[0]).toBe(`POST ${secretPath}?key=hunter2`);
    expect(toldLineSchema.safeParse(end.told[0]).error).toBeUndefined();
    expect(logged).toHaveLength(code === null ? 0 : 1);
    // what could not be told waits for the next execution
    const told = end.troubles.map((trouble) => trouble.told);
    expect(told).toEqual(code === null ? [endAt, endAt] : [null, null]);
    noAddress({ end, logged }, receiver.url);
  });

  test("is not there", async () => {
    const receiver = await Receiver.open();
    const { url } = receiver;
    await receiver[Symbol.asyncDispose]();
    const { notifiers, logged } = notifiersOf({ webhook: `${url}${secretPath}` });
    const end = await tellEnd(notifiers, endedJob());
    expect(end.told[0]).toMatchObject({
      result: "failed",
      attempts: 3,
      error: { code: "unreachable", exit: 0 },
    });
    noAddress({ end, logged }, url);
  });

  test("has a host name that cannot be resolved", async () => {
    const { notifiers, logged } = notifiersOf({ webhook: `http://hooks.invalid${secretPath}` });
    const end = await tellEnd(notifiers, endedJob());
    expect(end.told[0]).toMatchObject({ result: "failed", error: { exit: 0 } });
    noAddress({ end, logged }, "hooks.invalid");
  });
});

/** Neither an address nor a part of it is in what is recorded and logged. */
function noAddress(shown: unknown, url: string): void {
  const text = JSON.stringify(shown);
  for (const part of [
    url,
    new URL(url.includes(":") ? url : `http://${url}`).host,
    "5ecretHook9",
    "hunter2",
  ]) {
    expect(text).not.toContain(part);
  }
}

describe("all that is told", () => {
  test("side by side, and no longer than the time for the whole", async () => {
    await using receiver = await Receiver.open(() => {});
    const { notifiers } = notifiersOf(
      { heartbeat: `${receiver.url}/beat`, webhook: `${receiver.url}/hook`, pushgateway: receiver.url },
      { attemptMs: 50_000, pauseMs: 10, wholeMs: 300 },
    );
    const began = performance.now();
    const { told } = await tellEnd(notifiers, endedJob());
    expect(performance.now() - began).toBeLessThan(40_000);
    expect(told.map(({ to, result, error }) => [to, result, error?.code])).toEqual([
      ["heartbeat", "failed", "timeout"],
      ["webhook", "failed", "timeout"],
      ["pushgateway", "failed", "timeout"],
    ]);
  });

  test("ends with the signal", async () => {
    await using receiver = await Receiver.open(() => {});
    const { notifiers } = notifiersOf(
      { webhook: receiver.url },
      { attemptMs: 60_000, pauseMs: 10, wholeMs: 60_000 },
    );
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    const { told } = await tellEnd({ ...notifiers, signal: controller.signal }, endedJob());
    expect(told).toEqual([expect.objectContaining({ result: "failed", attempts: 1 })]);
  });

  test("nothing where nothing changed, but heartbeat and figures", async () => {
    await using receiver = await Receiver.open();
    const { notifiers } = notifiersOf({
      ...{ heartbeat: `${receiver.url}/beat`, webhook: `${receiver.url}/hook`, pushgateway: receiver.url },
      command: ["/nowhere/page"],
    });
    const changes = { worse: [], mended: [], reminded: [], troubles: [{ ...failedJob, told: endAt }] };
    const end = await tellEnd(notifiers, endedJob({ changes }));
    expect(receiver.targets).toEqual(["GET /beat/fail", "POST /metrics/job/nightly"]);
    expect(end.troubles).toEqual(changes.troubles);
  });

  test.each([
    ["worse", ["worse"], 1, 0],
    ["mended", ["mended"], 0, 1],
    ["both", ["worse", "mended"], 1, 1],
  ] as const)("of what is %s, where no more is asked for", async (_, on, worseCount, mendedCount) => {
    await using receiver = await Receiver.open();
    const { notifiers } = notifiersOf({ webhook: receiver.url, on: [...on] });
    const changes = { ...worse(unprovenFills), mended: [{ ...failedJob, told: endAt, mended: endAt }] };
    const { troubles } = await tellEnd(notifiers, endedJob({ changes }));
    const message = messageSchema.parse(JSON.parse(receiver.received[0]!.body));
    expect([message.worse.length, message.mended.length]).toEqual([worseCount, mendedCount]);
    expect(receiver.received[0]!.headers["content-type"]).toBe("application/json");
    // nobody waits for what nobody wants to hear
    expect(troubles).toEqual([{ ...unprovenFills, told: endAt }]);
  });

  test("waits for the next execution where it was mended and nobody heard", async () => {
    await using receiver = await Receiver.open(answers(500));
    const { notifiers } = notifiersOf({ webhook: receiver.url });
    const mended = { ...failedJob, told: endAt, mended: endAt };
    const end = endedJob({ changes: { worse: [], mended: [mended], reminded: [], troubles: [] } }, 0);
    expect((await tellEnd(notifiers, end)).troubles).toEqual([mended]);
  });
});

test("what is known without an execution is told as such", async () => {
  await using receiver = await Receiver.open();
  const { notifiers } = notifiersOf({ heartbeat: receiver.url, webhook: receiver.url });
  const begin = { job: "nightly", id: null, host: "vault-1", tool: "runvault 0.1.0" };
  const { told, troubles } = await tellChanges(notifiers, {
    ...{ begin, result: { at: endAt, exit: 2 }, changes: worse(failedJob) },
  });
  expect(told).toMatchObject([{ to: "webhook", result: "done" }]);
  expect(troubles).toEqual([{ ...failedJob, told: endAt }]);
  const { execution, text } = messageSchema.parse(JSON.parse(receiver.received[0]!.body));
  expect(execution).toBeNull();
  expect(text).toMatch(/^runvault job nightly on vault-1 cannot be executed — worse \(1\)/);
});

describe("a heartbeat", () => {
  test.each([
    ["/ping/abc", "/ping/abc/start", "/ping/abc", "/ping/abc/fail"],
    ["/ping/abc/", "/ping/abc/start", "/ping/abc/", "/ping/abc/fail"],
    ["/ping/abc?rid=1&x=/", "/ping/abc/start?rid=1&x=/", "/ping/abc?rid=1&x=/", "/ping/abc/fail?rid=1&x=/"],
    ["", "/start", "/", "/fail"],
    ["/a%2Fb#part", "/a%2Fb/start", "/a%2Fb", "/a%2Fb/fail"],
  ])("at %j is called at the start and at the end", async (path, start, done, fail) => {
    await using receiver = await Receiver.open();
    const { notifiers } = notifiersOf({ heartbeat: `${receiver.url}${path}` });
    expect(await tellStart(notifiers)).toEqual([
      expect.objectContaining({ to: "heartbeat", result: "done" }),
    ]);
    await tellEnd(notifiers, endedJob({}, 0));
    await tellEnd(notifiers, endedJob({}, 3));
    expect(receiver.targets).toEqual([start, done, fail].map((target) => `GET ${target}`));
  });

  test("has the user and password of its address as a header, and they are shown nowhere", async () => {
    await using receiver = await Receiver.open(answers(500));
    const scrubber = createScrubber();
    const url = receiver.url.replace("//", "//pager:s%40cret-word@");
    const { notifiers, logged } = notifiersOf({ heartbeat: `${url}/x` }, quick, scrubber);
    const told = await tellStart(notifiers);
    expect(receiver.received[0]!.headers.authorization).toBe(
      `Basic ${Buffer.from("pager:s@cret-word").toString("base64")}`,
    );
    expect(JSON.stringify({ told, logged })).not.toMatch(/s(?:%40|@)cret/);
    expect(scrubber.scrub("its password is s@cret-word")).toBe("its password is ***");
  });

  test("is not asked with a user or password that has a broken escape, and the message shows neither", async () => {
    await using receiver = await Receiver.open();
    const { notifiers, logged } = notifiersOf({
      heartbeat: receiver.url.replace("//", "//pager:%zzsecret@"),
    });
    const told = await tellStart(notifiers);
    expect(told).toEqual([expect.objectContaining({ result: "failed", attempts: 1 })]);
    expect(told[0]!.error).toMatchObject({
      code: "invalid_argument",
      message: "the user name or password in the address of the heartbeat has an invalid % escape",
    });
    expect(receiver.received).toEqual([]);
    expect(JSON.stringify({ told, logged })).not.toContain("zzsecret");
  });

  test("is nobody's where the file names none", async () => {
    expect(await tellStart(notifiersOf({}).notifiers)).toEqual([]);
  });
});

test("the scrubber knows an address and what of it may be secret, and leaves common words alone", () => {
  const scrubber = createScrubber();
  notifiersOf({ webhook: `https://hooks.example.com${secretPath}?sig=hunter2-long` }, quick, scrubber);
  const shown = scrubber.scrub(
    [
      `https://hooks.example.com${secretPath}?sig=hunter2-long`,
      secretPath,
      "5ecretHook9",
      "hunter2-long",
    ].join(" "),
  );
  expect(shown).not.toMatch(/5ecret|hunter2/);
  expect(scrubber.scrub("its services at /api/v1")).toBe("its services at /api/v1");
});

describe("figures", () => {
  const named = (textfile: string): NamedNotifiers => ({ textfile });
  const lastSuccess = /^runvault_job_last_success_timestamp_seconds\{job="nightly"\} (.*)$/m;

  test("replace a file that everybody can read, and keep the last success of the one before", async () => {
    const folder = await mkdtemp(join(scratch, "textfile-"));
    const file = join(folder, "nightly.prom");
    const { notifiers } = notifiersOf(named(file));
    const umask = process.umask(0o077);
    try {
      await tellEnd(notifiers, endedJob({ lastSuccess: null }, 0));
      await using old = await open(file);
      const { ino } = await old.stat();
      const first = await readFile(file, "utf8");
      await tellEnd(notifiers, endedJob({ lastSuccess: null }, 3));
      const stats = await stat(file);
      expect(stats.mode & 0o777).toBe(0o644);
      expect(stats.ino).not.toBe(ino);
      // whoever has it open reads the old one to its end
      expect(await old.readFile("utf8")).toBe(first);
      const second = await readFile(file, "utf8");
      expect(lastSuccess.exec(second)?.[1]).toBe(lastSuccess.exec(first)?.[1]);
      expect(Number(lastSuccess.exec(second)?.[1])).toBe(Date.parse(endAt) / 1000);
      expect(second).toContain('runvault_job_exit_code{job="nightly"} 3\n');
      expect(await readdir(folder)).toEqual(["nightly.prom"]);
    } finally {
      process.umask(umask);
    }
  });

  test("have no last success where there is none, or what is there is not ours", async () => {
    const file = join(await mkdtemp(join(scratch, "textfile-")), "x.prom");
    for (const old of ["", 'runvault_job_last_success_timestamp_seconds{job="other"} 5\n', "\u0000\ufffd"]) {
      await writeFile(file, old);
      await tellEnd(notifiersOf(named(file)).notifiers, endedJob({ lastSuccess: null }, 3));
      expect(await readFile(file, "utf8")).not.toContain("last_success");
    }
  });

  test("count those who could not be told", async () => {
    await using receiver = await Receiver.open(answers(500));
    const file = join(await mkdtemp(join(scratch, "textfile-")), "x.prom");
    const { notifiers } = notifiersOf({ textfile: file, webhook: receiver.url, heartbeat: receiver.url });
    await tellEnd(notifiers, endedJob());
    expect(await readFile(file, "utf8")).toContain('runvault_job_notifiers_failed{job="nightly"} 2\n');
  });

  test("that cannot be written are told of without the folder", async () => {
    const file = join(scratch, "not", "there", "x.prom");
    const { told } = await tellEnd(notifiersOf(named(file)).notifiers, endedJob());
    expect(told).toEqual([expect.objectContaining({ to: "textfile", result: "failed" })]);
    expect(told[0]!.error?.message).toBe("the metrics file x.prom could not be written (ENOENT)");
    expect(JSON.stringify(told)).not.toContain(scratch);
  });

  test("go to a Pushgateway by POST, and say nothing of a success that is not known: it keeps what it has", async () => {
    await using receiver = await Receiver.open(answers(202));
    const { notifiers } = notifiersOf({ pushgateway: `${receiver.url}/push/` });
    await tellEnd(notifiers, endedJob({ lastSuccess: null }, 3));
    await tellEnd(notifiers, endedJob({}, 3));
    expect(receiver.targets).toEqual(Array(2).fill("POST /push/metrics/job/nightly"));
    const [unknown, known] = receiver.received.map(({ body }) => lastSuccess.exec(body)?.[1]);
    expect(unknown).toBeUndefined();
    expect(Number(known)).toBe(Date.parse("2026-02-28T02:44:00.000Z") / 1000);
  });

  test("name no run", async () => {
    await using receiver = await Receiver.open();
    await tellEnd(notifiersOf({ pushgateway: receiver.url }).notifiers, endedJob());
    const { body } = receiver.received[0]!;
    expect(body).not.toContain("alpha-1");
    const labels = [...body.matchAll(/(\w+)="/g)].map(([, label]) => label!);
    expect([...new Set(labels)].sort()).toEqual(["job", "state", "table"]);
    expect(body).toContain('runvault_runs{job="nightly",state="UNVERIFIED"} 1\n');
    expect(body).toContain('runvault_job_table_rows{job="nightly",table="orders"} 2000\n');
  });
});

afterAll(async () => {
  const { rm } = await import("node:fs/promises");
  await rm(scratch, { recursive: true, force: true });
});
