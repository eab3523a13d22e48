import { expect, test } from "vitest";
import { readCurrentRun, readFacts, readInstances, readRuns } from "../../src/gateway/documents.ts";
import { Notices } from "../../src/gateway/notices.ts";
import { UnknownFields } from "../../src/gateway/rpc/unknown-fields.ts";

const unknown = new UnknownFields(new Notices(undefined));
const bytes = (json: unknown) => Buffer.from(JSON.stringify(json));

// caught by: a gateway that writes null for what it does not have, refused as no gateway
test("an optional field that is null is as one that is not there", async () => {
  const run = {
    run_id: "r",
    instance_id: "a",
    status: "FINISHED",
    ts_started: "1",
    ts_ended: "2",
    final: true,
  };
  const [read] = await readRuns(bytes({ runs: [{ ...run, storage_version: null }] }), "a", {}, unknown);
  expect(read).toMatchObject({ runId: "r", storageVersion: undefined, final: true });
  expect(read?.fault).toBeUndefined();

  const instance = { instance_id: "a", run_ids: null, latest_run_id: null };
  const instances = await readInstances(bytes({ instances: [instance] }), {}, unknown);
  expect(instances).toEqual([{ instanceId: "a", runIds: [] }]);

  const table = { table: "fills", rows: "1", min_ts_event: "1", max_ts_event: "1", final: true };
  const nulls = { schema_fingerprint: null, row_checksum: null };
  const facts = await readFacts(bytes({ tables: [{ ...table, ...nulls }] }), {}, unknown);
  expect(facts.get("fills")).toMatchObject({ rows: 1n, schemaFingerprint: "" });

  expect(readCurrentRun(bytes({ instanceId: "a", currentRunId: null }), { instance: "a" })).toBeNull();
});

// caught by: a null that is taken for a value which a document cannot do without
test("a needed field that is null is missing", async () => {
  const run = { run_id: "r", instance_id: "a", status: null, ts_started: "1", ts_ended: "2", final: true };
  const [read] = await readRuns(bytes({ runs: [run] }), "a", {}, unknown);
  expect(read?.fault).toMatchObject({ code: "not_a_gateway" });
});
