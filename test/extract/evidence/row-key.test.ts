import { expect, it } from "vitest";
import { rowKey } from "../../../src/extract/plan/row-key.ts";
import { tableNamed } from "../../../src/model/profile/table.ts";

// alone finds: two events of one instant taken for one, since the payload of each has the same member
it("a row's key is its own seq, not a member of its payload", () => {
  const event = (seq: string) => `{"payload":{"seq":"7"},"ts_event":"1","seq": "${seq}"}`;
  expect(rowKey(tableNamed("events"), true, event("011"))).toBe("11");
  expect(rowKey(tableNamed("events"), true, event("12"))).toBe("12");
  expect(rowKey(tableNamed("events"), true, '{"payload":{"seq":"7"},"ts_event":"1"}')).toBeUndefined();
});
