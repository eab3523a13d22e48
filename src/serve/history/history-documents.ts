import { create, type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import {
  type GetStorageFactsResponse,
  GetStorageFactsResponseSchema,
  type ListInstancesResponse,
  ListInstancesResponseSchema,
  type ListRunsResponse,
  ListRunsResponseSchema,
} from "../../gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../model/error.ts";
import type { DocumentKind, FactsRequest, HistorySource, RunRef } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { instanceNotFound, runNotFound } from "../../model/usual-errors.ts";

/** The run of a request: the exact id, or the instance's latest if it is empty. */
export async function resolveRun(
  source: HistorySource,
  instanceId: string,
  runId: string,
  signal: AbortSignal,
): Promise<RunRef> {
  // this interface has no such keyword, so there is no such run
  if (runId === "current") throw runNotFound({ instanceId, runId });
  if (runId !== "") return { instanceId, runId };
  const runs = await source.runs(instanceId, signal);
  const latest = runs === null ? await latestKnown(source, instanceId, signal) : runs.at(-1)?.runId;
  if (latest === undefined) throw runNotFound({ instanceId, runId });
  return { instanceId, runId: latest };
}

async function latestKnown(
  source: HistorySource,
  instanceId: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const entry = (await source.instances(signal)).find((found) => found.instanceId === instanceId);
  if (entry === undefined) throw instanceNotFound(instanceId);
  return entry.runIds.at(-1);
}

/** The instances with history. */
export async function instanceList(
  source: HistorySource,
  signal: AbortSignal,
): Promise<ListInstancesResponse> {
  const entries = await source.instances(signal);
  return create(ListInstancesResponseSchema, {
    instances: entries.map(({ instanceId, runIds }) => ({
      instanceId,
      runIds: [...runIds],
      latestRunId: runIds.at(-1) ?? "",
    })),
  });
}

/** The runs of an instance. Throws `route_not_found` if the source does not list runs. */
export async function runList(
  source: HistorySource,
  instanceId: string,
  signal: AbortSignal,
): Promise<ListRunsResponse> {
  const runs = (await source.runs(instanceId, signal)) ?? notOffered("runs");
  return create(ListRunsResponseSchema, {
    runs: runs.map((run) => ({
      runId: run.runId,
      instanceId: run.instanceId,
      status: run.status,
      tsStarted: run.started,
      tsEnded: run.ended ?? 0n,
      final: run.final,
      storageVersion: run.storageVersion ?? "",
    })),
  });
}

/** The storage facts of a run. Throws `route_not_found` if the source has none. */
export async function storageFacts(
  source: HistorySource,
  run: RunRef,
  bounds: TimeBounds,
  asked: FactsRequest,
  signal: AbortSignal,
): Promise<GetStorageFactsResponse> {
  const facts = (await source.facts(run, bounds, signal, asked)) ?? notOffered("storage facts");
  return create(GetStorageFactsResponseSchema, {
    tables: [...facts].map(([table, { rows, first, last, schemaFingerprint, final, rowHash }]) => ({
      table,
      rows,
      minTsEvent: first ?? 0n,
      maxTsEvent: last ?? 0n,
      schemaFingerprint,
      final,
      rowChecksum: rowHash?.toString() ?? "",
    })),
  });
}

/** A run's document, as the source's bytes. Throws `history_unavailable` or, for resources, `route_not_found`. */
export async function runDocument(
  source: HistorySource,
  run: RunRef,
  kind: DocumentKind,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const bytes = await source.document(run, kind, signal);
  if (bytes !== null) return bytes;
  if (kind === "resources") return notOffered("resources");
  throw new RunvaultError("history_unavailable", `run ${JSON.stringify(run.runId)} has no ${kind} document`);
}

function notOffered(what: string): never {
  throw new RunvaultError("route_not_found", `this server has no ${what}`);
}

/** A message as REST shows it on history routes: proto field names, zero values present. */
export function restJson<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return JSON.stringify(toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true }));
}
