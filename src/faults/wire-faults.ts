import type { HistorySource } from "../model/source.ts";
import type { WireHook } from "../serve/wire-hook.ts";
import type { ArmedFaults } from "./armed-faults.ts";
import { byteStops, delayByFault, refuseByFault, rowStops } from "./fault-effects.ts";
import { FaultySource } from "./faulty-source.ts";
import { faultyAnswer } from "./rpc-answer-faults.ts";
import { RpcFaults } from "./rpc-faults.ts";

/** The faults in a server's answers. */
export function wireFaults(faults: ArmedFaults): (source: HistorySource) => WireHook {
  return (source) => {
    const faulty = new FaultySource(source, faults);
    const rpc = new RpcFaults(faults, faulty);
    return {
      sources: { rest: faulty, rpc: faulty.forMessages() },
      before: async (asked, transport, signal) => {
        await delayByFault(faults, asked, signal);
        if (transport === "rpc") await rpc.refuse(asked, signal);
        refuseByFault(faults, asked);
      },
      stops: (table) => ({ rows: rowStops(faults, table), bytes: byteStops(faults, table) }),
      beforePage: (place, number) => rpc.beforePage(place, number),
      page: (table, token, page) => rpc.shown(table, token, page),
      pageField: (table, page) => rpc.filling(table, page),
      answer: (asked, rows, accepted, made) => faultyAnswer(faults, asked, rows, accepted, made),
    };
  };
}
