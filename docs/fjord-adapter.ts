// An adapter for Fjord, a gateway that no profile can describe: it signs each request, and its fills are CSV. Run it with
//   FJORD_SECRET=… runvault archive desk/2026-11-24 --gateway https://fjord.example --adapter ./fjord-adapter.ts
import { createHmac } from "node:crypto";
import { type Adapter, canonicalLine, RunvaultError, tableNamed, usualTraits } from "runvault/source";

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
  async function values(path: string, signal: AbortSignal | undefined): Promise<string[][]> {
    const found: string[][] = [];
    for await (const line of lines(path, signal)) found.push(line.split(","));
    return found;
  }
  const target = (route: string, asked: Record<string, string | bigint | number | undefined>) =>
    `/${route}?${Object.entries(asked)
      .flatMap(([name, value]) => (value === undefined ? [] : `${name}=${encodeURIComponent(`${value}`)}`))
      .join("&")}`;

  return {
    label: `Fjord at ${baseUrl}`,
    instances: async (signal) => [
      { instanceId: "desk", runIds: (await values("/runs", signal)).map(([runId = ""]) => runId) },
    ],
    runs: async (instanceId, signal) =>
      (await values("/runs", signal)).map(([runId = "", started = "", ended = ""]) => {
        const isOver = ended !== "";
        const times = { started: BigInt(started), ended: isOver ? BigInt(ended) : undefined };
        const status = isOver ? "FINISHED" : "RUNNING";
        return { instanceId, runId, status, ...times, final: isOver, storageVersion: undefined };
      }),
    async facts({ runId: run }, { from: start, to: end }, signal) {
      const [counted = []] = await values(target("count", { run, start, end }), signal);
      const [rows = 0n, first, last] = counted.map((text) => (text === "" ? undefined : BigInt(text)));
      return new Map([["fills", { rows, first, last, schemaFingerprint: "fjord-1", final: true }]]);
    },
    document: async () => null,
    async *rows({ instanceId, runId, table, from: start, to: end, limit: most, filters = {}, signal }) {
      if (table !== "fills") throw new RunvaultError("history_unavailable", "Fjord keeps fills alone");
      if (Object.keys(filters).length > 0)
        throw new RunvaultError("invalid_argument", "Fjord has no filters");
      for await (const line of lines(target("fills", { run: runId, start, end, most }), signal)) {
        const values = line.split(",");
        const row = Object.fromEntries(columns.map((column, at) => [column, values[at] ?? ""]));
        const ids = { run_id: runId, instance_id: instanceId };
        yield Buffer.from(`${canonicalLine(fills, { ...row, ...empty, ...ids })}\n`);
      }
    },
    traits: () => ({ ...usualTraits, filters: [] }),
    described: { tables: ["fills"], none: [] },
    async [Symbol.asyncDispose]() {},
  };
};
export default fjord;
