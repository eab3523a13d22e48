import { expect, test } from "vitest";
import { LiveWorld } from "../fixtures/served/live-world.ts";

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly metrics: readonly {
    readonly value?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly count?: string;
  }[];
}

/** Reads Prometheus text with a parser that shares no code with what wrote it. */
async function parsed(text: string): Promise<Map<string, Family>> {
  // the package has no types and is CommonJS
  const loaded = (await import("parse-prometheus-text-format" as string)) as {
    default: (text: string) => Family[];
  };
  return new Map(loaded.default(text).map((family) => [family.name, family]));
}

test("metrics are Prometheus text of the process and of the answers so far", async () => {
  await using world = await LiveWorld.open();
  await world.ask("/health");
  await world.ask("/instances/alpha-1");
  await world.ask("/instances/nobody");
  await world.ask("/history/bars?instance=alpha-1");
  await world.ask("/no/such/path");
  using client = await world.connect();
  client.subscribe(`fills.SIMEX.BTC-PERP`);
  await client.until((frame) => frame.subscribed !== undefined);
  const answer = await world.ask("/metrics");
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  const families = await parsed(answer.text);
  const requests = families.get("runvault_http_requests_total")!;
  expect(requests.type).toBe("COUNTER");
  const counted = new Map(
    requests.metrics.map(({ labels, value }) => [
      `${labels!.method} ${labels!.route} ${labels!.status}`,
      value,
    ]),
  );
  expect(Object.fromEntries(counted)).toEqual({
    "GET /api/v1/health 200": "1",
    "GET /api/v1/instances/:id 200": "1",
    "GET /api/v1/instances/:id 404": "1",
    "GET /api/v1/history/bars 200": "1",
    "GET  404": "1",
  });
  expect(families.get("runvault_http_request_duration_seconds")!.type).toBe("HISTOGRAM");
  expect(families.get("runvault_live_connections")!.metrics[0]!.value).toBe("1");
  expect(families.get("runvault_live_subscriptions")!.metrics[0]!.value).toBe("1");
  expect(Number(families.get("process_resident_memory_bytes")!.metrics[0]!.value)).toBeGreaterThan(1e6);
});

test("servers count apart, and answer at the origin as under the base path", async () => {
  await using one = await LiveWorld.open({ rows: 500 });
  await using other = await LiveWorld.open({ rows: 500 });
  await one.ask("/health");
  const families = await parsed(await (await fetch(`${new URL(other.server.url).origin}/metrics`)).text());
  expect(families.get("runvault_http_requests_total")!.metrics).toEqual([]);
});

test("discovery names what can be scraped, and each target answers with Prometheus text", async () => {
  await using world = await LiveWorld.open({ instances: 3 });
  const { origin, host } = new URL(world.server.url);
  const groups = (await (await fetch(`${origin}/discovery`)).json()) as {
    targets: string[];
    labels: Record<string, string>;
  }[];
  expect((await world.ask("/discovery")).json()).toEqual(groups);
  expect(groups.map(({ targets, labels }) => [targets, labels.__metrics_path__, labels.instance_id])).toEqual(
    [
      [[host], "/metrics", undefined],
      [[host], "/metrics/instances/9100", "alpha-1"],
      [[host], "/metrics/instances/9101", "beta-2"],
      [[host], "/metrics/instances/9102", "gamma-3"],
    ],
  );
  for (const { targets, labels } of groups) {
    const response = await fetch(`${labels.__scheme__}://${targets[0]}${labels.__metrics_path__}`);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    const families = await parsed(await response.text());
    if (labels.instance_id === undefined) continue;
    expect(families.get("strategy_up")!.metrics).toEqual([
      { labels: expect.objectContaining({ trading_instance: labels.instance_id }), value: "1" },
    ]);
    expect(families.get("strategy_equity")!.metrics).toHaveLength(1);
  }
});

test("no label of a figure is one that Prometheus, or discovery, gives to its target", async () => {
  await using world = await LiveWorld.open({ rows: 500 });
  const groups = (await world.ask("/discovery")).json() as { labels: Record<string, string> }[];
  const ofTargets = ["job", "instance", ...groups.flatMap(({ labels }) => Object.keys(labels))];
  for (const path of ["/metrics", "/metrics/instances/9100"]) {
    const families = await parsed((await world.ask(path)).text);
    const labels = [...families.values()].flatMap(({ metrics }) =>
      metrics.flatMap((metric) => Object.keys(metric.labels ?? {})),
    );
    expect(labels.filter((label) => ofTargets.includes(label))).toEqual([]);
  }
});

test("an instance's figures follow its state and rows", async () => {
  await using world = await LiveWorld.open();
  const figures = async () => {
    const families = await parsed((await world.ask("/metrics/instances/9100")).text);
    const rows = families.get("strategy_run_rows")!.metrics;
    return [
      families.get("strategy_up")!.metrics[0]!.value,
      rows.find(({ labels }) => labels!.table === "bars")!.value,
    ];
  };
  const bars = (await world.ask("/history/bars?instance=alpha-1")).text.trim().split("\n").length;
  expect(await figures()).toEqual(["1", String(bars)]);
  await world.post("/instances/alpha-1/stop");
  world.pass(10_000_000_000n);
  expect((await figures())[0]).toBe("0");
});

test("a Host that is none does not end up in discovery", async () => {
  // without a token such a request is not answered at all
  const token = "0123456789abcdef-scraper";
  await using world = await LiveWorld.open({ rows: 500, serve: { token } });
  const { request } = await import("undici");
  for (const host of ['a"b:80', "evil.example", "x:99999999"]) {
    const { body } = await request(`${world.server.url}/discovery`, {
      headers: { host, authorization: `Bearer ${token}` },
    });
    const groups = (await body.json()) as { targets: string[] }[];
    expect(groups[0]!.targets[0]).toBe(
      host === "evil.example" ? "evil.example:80" : `127.0.0.1:${world.server.port}`,
    );
  }
});
