import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { bytesOf, ServedFiles } from "../fixtures/served/served-files.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let archived: TableWorld;
let served: ServedFiles;
let url: string;
let file: Awaited<ReturnType<ServedFiles["committed"]>>[number];
let size: number;
const log: RequestLogEntry[] = [];
beforeAll(async () => {
  archived = await TableWorld.create();
  await archived.archiveRun(new ArraySource(run, world({ fills: hours(60), bars: hours(3) })));
  served = await ServedFiles.open(
    archived.archive,
    {},
    {
      onRequest: (entry) => log.push(entry),
      origins: ["https://desk.example"],
    },
  );
  [file] = (await served.committed(run, "fills")) as [typeof file];
  size = file.content.length;
  url = (await served.list("fills")).files[0]!.url;
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await archived[Symbol.asyncDispose]();
});

describe("lists", () => {
  test("name the tables that have files, with how much there is of each", async () => {
    const response = await served.get("");
    const { tables } = (await response.json()) as { tables: Record<string, unknown>[] };
    expect(tables.map(({ table, runs, files, rows }) => [table, runs, files, rows])).toEqual([
      ["fills", 1, 1, 60],
      ["bars", 1, 1, 3],
    ]);
    expect(tables[0]).toMatchObject({ bytes: size, url: `${served.server.url}/files/fills` });
  });

  test("are among what the origin says there is", async () => {
    const { links } = (await (await fetch(new URL("/", served.server.url))).json()) as {
      links: Record<string, string>;
    };
    expect(new URL(links.files!, served.server.url).href).toBe(`${served.server.url}/files`);
  });

  test("say of each file what the manifest does", async () => {
    const { files, withheld } = await served.list("fills");
    expect(withheld).toEqual([]);
    const { instanceId: instance, runId: run_id } = run;
    expect(files).toEqual([
      {
        url: `${served.server.url}/files/fills/alpha/2022-01-01/${file.file.replace(/parquet$/, `${file.sha256.slice(0, 16)}.parquet`)}`,
        instance,
        run_id,
        state: "COMPLETE",
        generation: 1,
        bucket: file.bucket,
        rows: 60,
        bytes: size,
        min_ts_event: file.first.ts,
        max_ts_event: file.last.ts,
        sha256: file.sha256,
      },
    ]);
  });

  test("come as addresses alone, one a line, to who asks for text", async () => {
    const response = await served.get("/fills", { accept: "text/plain" });
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("vary")).toContain("accept");
    expect(await response.text()).toBe(`${url}\n`);
    const both = await served.get("/fills", { accept: "text/plain;q=0.5, application/json" });
    expect(both.headers.get("content-type")).toMatch(/json/);
  });

  test("have addresses by the name that the server was asked by", async () => {
    const { port } = served.server;
    const { body } = await rawGet(`${served.server.url}/files/fills`, { host: `localhost:${port}` });
    expect(JSON.parse(body.toString()).files[0].url).toBe(url.replace("127.0.0.1", "localhost"));
  });

  test("have the same head to HEAD, and no body", async () => {
    for (const path of ["", "/fills"]) {
      const [head, get] = [await served.get(path, {}, "HEAD"), await served.get(path)];
      expect([head.status, head.headers.get("content-length")]).toEqual([
        200,
        String((await get.text()).length),
      ]);
      expect(await head.text()).toBe("");
    }
  });

  test("are of an instance or a run; the empty run is the latest", async () => {
    for (const query of ["?instance=alpha", "?instance=alpha&run_id=2022-01-01", "?instance=alpha&run_id="]) {
      expect((await served.list("fills", query)).files.map((one) => one.url)).toEqual([url]);
    }
  });

  test.each([
    ["/fills?instance=beta", 404, "instance_not_found"],
    ["/fills?instance=alpha&run_id=x", 404, "run_not_found"],
    ["/fills?run_id=2022-01-01", 400, "invalid_argument"],
    ["/fills?symbol=A", 400, "invalid_argument"],
    ["/orders?instance=alpha&run_id=2022-01-01", 409, "history_unavailable"],
    ["/fils", 404, "resource_not_found"],
  ])("of %s are refused with %i %s", async (path, status, code) => {
    const response = await served.get(path);
    expect([response.status, await response.json()]).toMatchObject([status, { ok: false, error: { code } }]);
  });
});

describe("a file", () => {
  test("is given whole, plain, with its length and a strong tag of its contents", async () => {
    const response = await served.get(url, { "accept-encoding": "zstd, gzip" });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-length": String(size),
      "content-type": "application/vnd.apache.parquet",
      "accept-ranges": "bytes",
      "cache-control": "public, max-age=3600, immutable",
      etag: `"${file.sha256}"`,
    });
    expect(response.headers.has("content-encoding")).toBe(false);
    expect((await bytesOf(response)).equals(file.content)).toBe(true);
    expect(log.at(-1)).toMatchObject({
      status: 200,
      bytes: size,
      ending: "whole",
      table: "fills",
      instance: "alpha",
      run: "2022-01-01",
    });
  });

  test("has the same head to HEAD, whatever range is asked for", async () => {
    const response = await served.get(url, { range: "bytes=0-3" }, "HEAD");
    expect([response.status, response.headers.get("content-length")]).toEqual([200, String(size)]);
    expect(response.headers.get("etag")).toBe(`"${file.sha256}"`);
    expect(log.at(-1)).toMatchObject({ method: "HEAD", status: 200, bytes: 0, ending: "whole" });
  });

  test.each([
    ["bytes=0-3", () => [0, 3]],
    ["bytes=4-4", () => [4, 4]],
    ["bytes=100-", () => [100, size - 1]],
    ["bytes=-8", () => [size - 8, size - 1]],
    ["BYTES=0-0", () => [0, 0]],
    ["bytes=0-99999999999999999999", () => [0, size - 1]],
    ["bytes=-99999999999999999999", () => [0, size - 1]],
  ] as const)("gives the range %s", async (range, wanted) => {
    const [from, last] = wanted() as [number, number];
    const response = await served.get(url, { range });
    expect([response.status, response.headers.get("content-range")]).toEqual([
      206,
      `bytes ${from}-${last}/${size}`,
    ]);
    expect(response.headers.get("content-length")).toBe(String(last + 1 - from));
    expect((await bytesOf(response)).equals(file.content.subarray(from, last + 1))).toBe(true);
  });

  test.each([
    "bytes=0-1,4-5",
    "bytes=5-4",
    "bytes=a-b",
    "bytes=",
    "bytes=-",
    "lines=0-1",
    "bytes=1-2x",
    "0-3",
  ])("is given whole where the range %s is none that it gives", async (range) => {
    const response = await served.get(url, { range });
    expect([response.status, (await bytesOf(response)).length]).toEqual([200, size]);
  });

  test.each([() => `bytes=${size}-`, () => "bytes=-0", () => "bytes=99999999999999999999-"])(
    "has nothing of a range beyond its end",
    async (range) => {
      const response = await served.get(url, { range: range() });
      expect([response.status, response.headers.get("content-range")]).toEqual([416, `bytes */${size}`]);
      expect(await response.json()).toMatchObject({ ok: false, error: { code: "range_not_satisfiable" } });
    },
  );

  test("is not sent to who has it, and is refused to who wants another", async () => {
    const [tag, other] = [`"${file.sha256}"`, `"${"0".repeat(64)}"`];
    const status = async (headers: Record<string, string>) => (await served.get(url, headers)).status;
    expect(await status({ "if-none-match": tag })).toBe(304);
    expect(await status({ "if-none-match": `${other}, W/${tag}` })).toBe(304);
    expect(await status({ "if-none-match": "*" })).toBe(304);
    expect(await status({ "if-none-match": other })).toBe(200);
    expect(await status({ "if-match": tag, range: "bytes=0-1" })).toBe(206);
    expect(await status({ "if-match": "*" })).toBe(200);
    expect(await status({ "if-match": other })).toBe(412);
    expect(await status({ "if-match": `W/${tag}` })).toBe(412);
    expect(await status({ "if-range": tag, range: "bytes=0-1" })).toBe(206);
    for (const ifRange of [other, `W/${tag}`, "Mon, 23 Nov 2026 00:00:00 GMT"])
      expect(await status({ "if-range": ifRange, range: "bytes=0-1" })).toBe(200);
  });

  test("lets pages of an origin that is allowed ask for ranges, and read where they are", async () => {
    const origin = "https://desk.example";
    const asked = { origin, "access-control-request-method": "GET" };
    const preflight = await served.get(url, asked, "OPTIONS");
    const allowed = preflight.headers.get("access-control-allow-headers")!.split(", ");
    expect(allowed).toEqual(expect.arrayContaining(["range", "if-range", "if-match", "if-none-match"]));
    const answer = await served.get(url, { origin, range: "bytes=-4" });
    const exposed = answer.headers.get("access-control-expose-headers")!.split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["accept-ranges", "content-range", "etag"]));
    expect(await answer.text()).toBe("PAR1");
  });

  test.each([
    ["another table's", (path: string) => path.replace("/files/fills/", "/files/bars/"), 404],
    ["with another hash", (path: string) => path.replace(/\.[0-9a-f]{16}\./, ".0123456789abcdef."), 410],
    ["of a generation to come", (path: string) => path.replace(".g1.", ".g2."), 404],
    ["of another run", (path: string) => path.replace("2022-01-01/", "2022-01-02/"), 404],
    ["without its hash", (path: string) => path.replace(/\.[0-9a-f]{16}\./, "."), 404],
    ["as a segment's", (path: string) => path.replace(/[^/]*$/, "fills.g1.000001.ndjson.zst"), 404],
    [
      "as a way to the manifest",
      (path: string) => path.replace(/[^/]*$/, "..%2F..%2F..%2Farchive.json"),
      404,
    ],
    ["as a way up", (path: string) => path.replace("2022-01-01/", "~2E~2E~2F/"), 404],
    ["with a NUL", (path: string) => path.replace(/[^/]*$/, "%00"), 404],
  ])("%s is not given", async (_, changed, status) => {
    const response = await served.get(changed(url));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ ok: false });
  });

  test("lets such pages read how many tables a list leaves out", async () => {
    const list = await served.get("/fills", { origin: "https://desk.example" });
    const exposed = list.headers.get("access-control-expose-headers")!.split(", ");
    expect(exposed).toContain("runvault-withheld");
  });

  test("takes no parameters", async () => {
    expect((await served.get(`${url}?v=1`)).status).toBe(400);
  });

  test("that is damaged is not given, from the first request on", async () => {
    const path = join(archived.archive.layout.dataDir(run), file.file);
    const changed = Buffer.from(await readFile(path));
    changed[size >> 1]! ^= 1;
    await writeFile(path, changed);
    try {
      const told: string[] = [];
      await using other = await ServedFiles.open(
        archived.archive,
        {},
        { onError: ({ code }) => told.push(code) },
      );
      const path = url.slice(url.indexOf("/files/") + "/files".length);
      for (const server of [other, served]) {
        const response = await server.get(path, { range: "bytes=0-3" });
        const error = { code: "history_query_failed", message: expect.stringContaining("SHA-256") };
        expect([response.status, await response.json()]).toEqual([502, { ok: false, error }]);
      }
      expect(told).toEqual(["archive_damaged"]);
    } finally {
      await writeFile(path, file.content);
    }
    expect((await served.get(url)).status).toBe(200);
  });
});

describe("limits", () => {
  test("--max-bytes is of one answer: ranges below it are given", async () => {
    await using limited = await ServedFiles.open(archived.archive, {}, { limits: { bytes: size - 1 } });
    const [{ url: own } = { url: "" }] = (await limited.list("fills")).files;
    const response = await limited.get(own);
    expect([response.status, await response.json()]).toMatchObject([
      413,
      { error: { code: "limit_exceeded" } },
    ]);
    expect((await limited.get(own, {}, "HEAD")).status).toBe(200);
    expect((await limited.get(own, { range: `bytes=0-${size - 2}` })).status).toBe(206);
  });

  test("files count among the queries at a time", async () => {
    await using limited = await ServedFiles.open(archived.archive, {}, { limits: { queries: 0 } });
    for (const path of ["", "/fills", url.slice(url.indexOf("/files/") + "/files".length)]) {
      const response = await limited.get(path);
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, "1"]);
      expect((await limited.get(path, {}, "HEAD")).status).toBe(429);
    }
  });

  test("--literal has no files", async () => {
    await using literal = await ServedFiles.open(archived.archive, {}, { literal: true });
    expect((await literal.get("/fills")).status).toBe(404);
  });
});
