// @module-tag slow
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { openRequestScope } from "../../src/gateway/request-scope.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { collectAll } from "../fixtures/command/collect-garbage.ts";

test("scopes leave nothing on a signal that outlives them, whenever garbage is collected", async () => {
  const { signal } = new AbortController();
  const scopes = Array.from({ length: 20 }, () => openRequestScope([undefined, signal]));
  await collectAll();
  for (const scope of scopes) scope[Symbol.dispose]();
  expect(getEventListeners(signal, "abort").length).toBe(0);
  expect(scopes.map((scope) => scope.signal.aborted)).not.toContain(true);
});

test("what a scope held is free once it is disposed", async () => {
  const { signal } = new AbortController();
  const held = new WeakRef(openAndDispose(signal));
  await collectAll();
  expect(held.deref() === undefined).toBe(true);
});

/** Disposes a scope in a frame that has a buffer; gives the buffer. */
function openAndDispose(signal: AbortSignal): Buffer {
  const holder = {
    buffer: Buffer.alloc(1024),
    dispose(scope: Disposable) {
      scope[Symbol.dispose]();
    },
  };
  holder.dispose(openRequestScope([signal]));
  return holder.buffer;
}

test("a scope ends, with a RunvaultError, by whichever outer signal fires first, also one that fired before", async () => {
  const caller = new AbortController();
  const closing = new AbortController();
  using scope = openRequestScope([caller.signal, undefined, closing.signal]);
  closing.abort(new RunvaultError("interrupted", "the source was closed"));
  caller.abort("no more");
  expect(scope.signal.reason).toBe(closing.signal.reason);

  using late = openRequestScope([caller.signal]);
  expect(late.signal.reason).toMatchObject({ code: "interrupted", cause: "no more" });
});
