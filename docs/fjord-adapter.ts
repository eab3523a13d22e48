// An adapter for Fjord, a gateway that no profile can describe: it signs each request, and its fills are CSV. Run it with
//   FJORD_SECRET=… runvault archive desk/2026-11-24 --gateway https://fjord.example --adapter ./fjord-adapter.ts
import { createHmac } from "node:crypto";
import {
  type Adapter,
  canonicalLine,
  type Row,
  RunvaultError,
  tableNamed,
  usualTraits,
} from "runvault/source";

const columns =
  "seq,ts_event,ts_init,account,venue,symbol,trade_id,side,price,quantity,fee,fee_currency".split(",");
const empty = { resource_key: "", portfolio: "", client_order_id: "", venue_order_id: "", liquidity: "" };
const fills = tableNamed("fills");

const fjord: Adapter = ({ baseUrl }) => {
  /** The lines of an answer, as they come. */
  async function* lines(path: string, signal: AbortSignal | undefined): AsyncGenerator<string> {
    const time = String(Date.now());
    const signature = createHmac("sha256", process.env.FJORD_SECRET ?? "").update(time + path);
    const headers = { "x-time": time, "x-signature": signature.digest("hex") };
    const answer = await fetch(new URL(path, baseUrl), { headers, signal: signal ?? null });
    if (answer.status === 404) throw new RunvaultError("run_not_found", "Fjord has no such run");
    if (answer.status === 401) throw new RunvaultError("unauthenticated", "Fjord refuses the signature");
    if (!answer.ok) throw new RunvaultError("server_error", `Fjord answered ${answer.status}`);
    let rest = "";
    // a body that is cut throws: what fetch ends without a word came whole
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      const whole = (rest + chunk).split("\n");
      rest = whole.pop()!;
      yield* whole;
    }
    if (rest !== "") throw new RunvaultError("stream_cut", "Fjord's answer ends inside a line");
  }
  const bounds = ({ from, to }: { from?: bigint | undefined; to?: bigint | undefined }) =>
    `${from === undefined ? "" : `&start=${from}`}${to === undefined ? "" : `&end=${to}`}`;

  return {
    label: `Fjord at ${baseUrl}`,
    async instances(signal) {
      return [{ instanceId: "desk", runIds: (await this.runs("desk", signal))!.map(({ runId }) => runId) }];
    },
    async runs(instanceId, signal) {
      const runs = await Array.fromAsync(lines("/runs", signal), (line) => line.split(","));
      return runs.map(([runId, started, ended]) => {
        const times = { started: BigInt(started!), ended: ended === "" ? undefined : BigInt(ended!) };
        const [status, final] = ended === "" ? ["RUNNING", false] : ["FINISHED", true];
        return {
          instanceId,
          runId: runId!,
          status: status as string,
          ...times,
          final: final as boolean,
          storageVersion: undefined,
        };
      });
    },
    async facts({ runId }, within, signal) {
      const [line] = await Array.fromAsync(
        lines(`/count?run=${encodeURIComponent(runId)}${bounds(within)}`, signal),
      );
      const [rows, first, last] = line!.split(",").map((text) => (text === "" ? undefined : BigInt(text)));
      return new Map([["fills", { rows: rows!, first, last, schemaFingerprint: "fjord-1", final: true }]]);
    },
    document: async () => null,
    async *rows({ instanceId, runId, table, limit, filters, signal, ...within }) {
      if (table !== "fills") throw new RunvaultError("history_unavailable", "Fjord keeps fills alone");
      if (Object.keys(filters ?? {}).length > 0)
        throw new RunvaultError("invalid_argument", "Fjord has no filters");
      const most = limit === undefined ? "" : `&most=${limit}`;
      for await (const line of lines(
        `/fills?run=${encodeURIComponent(runId)}${bounds(within)}${most}`,
        signal,
      )) {
        const values = line.split(",");
        const row: Row = Object.fromEntries(columns.map((column, at) => [column, values[at] ?? ""]));
        yield Buffer.from(
          `${canonicalLine(fills, { ...row, ...empty, run_id: runId, instance_id: instanceId })}\n`,
        );
      }
    },
    traits: () => ({ ...usualTraits, filters: [] }),
    described: { tables: ["fills"], none: [] },
    async [Symbol.asyncDispose]() {},
  };
};
export default fjord;
