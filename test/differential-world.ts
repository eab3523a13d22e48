import type { InstanceEntry } from "../src/model/source.ts";
import { nsPerSecond } from "../src/model/time.ts";
import type { Simulator } from "../src/simulator/simulator.ts";
import type { Phase } from "./differential-request.ts";

/** Names that need escaping in a URL, in JSON, in SQL or in a metric's label, and bytes beyond ASCII. */
export const nasty = {
  symbol: `BTC/PERP "ü' 100%`,
  venue: "SIM\\EX;--",
  account: "main & co",
  portfolio: "core=1?#ß",
} as const;

/** What requests are made of. */
export interface NamedWorld {
  readonly instances: readonly InstanceEntry[];
  readonly resourceKeys: readonly string[];
  /** An instant within the first run of the first instance, and its neighbours. */
  readonly times: { readonly early: bigint; readonly middle: bigint; readonly late: bigint };
}

export async function namedWorld(world: Simulator): Promise<NamedWorld> {
  const instances = (await world.instances()).map(({ instanceId, runIds }) => ({ instanceId, runIds }));
  const { instanceId, runIds } = instances[0]!;
  const { started, ended } = world.span({ instanceId, runId: runIds[0]! });
  const part = (ended - started) / 4n;
  const { resources = [] } = await world.catalog(instanceId);
  return {
    instances,
    resourceKeys: [...new Set(resources.map(({ resourceKey = "" }) => resourceKey))],
    times: { early: started + part, middle: started + 2n * part, late: started + 3n * part },
  };
}

/** What the world's clock shows in each phase. */
export async function clockOf(world: Simulator): Promise<Record<Phase, bigint>> {
  const spans = (await world.instances()).map(({ instanceId, runIds }) =>
    world.span({ instanceId, runId: runIds.at(-1)! }),
  );
  const { started, ended } = spans[0]!;
  const last = spans.map(({ complete }) => complete).reduce((a, b) => (a > b ? a : b));
  const hour = 3600n * nsPerSecond;
  return { running: (started + ended) / 2n, ended: last + 3n * hour, later: last + 3n * hour + hour / 6n };
}
