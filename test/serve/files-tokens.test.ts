import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { TokenList, tokenLine } from "../../src/serve/auth/token-list.ts";
import { idOfPart, pathPart } from "../../src/serve/http/path-part.ts";
import { accessEntry } from "../../src/serve/monitoring/access-log.ts";
import { archiveWorld, smallWorld } from "../fixtures/archive/archived-world.ts";
import { type FilesDocument, ServedFiles } from "../fixtures/served/served-files.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const own = "0123456789abcdef-alpha";
const every = "0123456789abcdef-every";
/** Ids that clients, proxies and servers like to make something else of. */
const hostile = ["..", "a/b", "~2E", "%2F", "*[x]?#", "Ünï é", "a b+c", "-", "\\..\\", "x".repeat(300)];
const runId = "2022-01-01";
const list = TokenList.parse(
  `${tokenLine(own, "alpha-desk", ["alpha"])}${tokenLine(every, "operator", ["*"])}`,
  "tokens",
);

let folder: string;
let archive: Archive;
let served: ServedFiles;
const log: Readonly<Record<string, unknown>>[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-files-"));
  for (const instanceId of ["alpha", ...hostile]) {
    const run = { instanceId, runId };
    const fills = new Map([...smallWorld(25, run)].filter(([table]) => table === "fills"));
    await archiveWorld(join(folder, "archive"), new ArraySource(run, fills), { tables: ["fills"] });
  }
  archive = await openArchive(join(folder, "archive"));
  served = await ServedFiles.open(
    archive,
    {},
    {
      tokens: list,
      onRequest: (entry, scope) => log.push(accessEntry(entry, scope)),
    },
  );
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test("every instance's files are found by the address that the list gives, whatever it is called", async () => {
  const { files } = await served.list("fills", "", bearer(every));
  expect(files.map(({ instance }) => instance).toSorted()).toEqual(["alpha", ...hostile].toSorted());
  for (const { url, instance, bytes } of files) {
    expect(new URL(url).href).toBe(url);
    expect(new URL(url).pathname).toMatch(/^[A-Za-z0-9._~/-]+$/);
    const response = await served.get(url, bearer(every));
    expect([response.status, response.headers.get("content-length")], instance).toEqual([200, String(bytes)]);
    expect(log.at(-1)).toMatchObject({ instance, token: "operator" });
  }
});

test("an id in a path is itself again, percent-encoded or not", () => {
  for (const id of hostile) {
    expect(idOfPart(pathPart(id))).toBe(id);
    if (!id.includes("~")) expect(idOfPart(id)).toBe(id);
  }
});

test("a token sees the files of its own instances alone, and learns nothing of others", async () => {
  const { files, withheld } = await served.list("fills", "", bearer(own));
  expect([files.map(({ instance }) => instance), withheld]).toEqual([["alpha"], []]);
  const tables = await (await served.get("", bearer(own))).json();
  expect(tables).toMatchObject({ tables: [{ table: "fills", runs: 1, rows: 25 }] });
  const others = (await served.list("fills", "", bearer(every))).files;
  const answer = async (path: string, method = "GET") => {
    const response = await served.get(path, bearer(own), method);
    return [response.status, (await response.text()).replaceAll(/a~2Fb|a\/b|nobody/g, "X")];
  };
  const there = others.find(({ instance }) => instance === "a/b")!.url;
  const absent = there.replace("a~2Fb", "nobody");
  expect((await answer(there))[0]).toBe(403);
  expect(await answer(there)).toEqual(await answer(absent));
  expect(await answer(there, "HEAD")).toEqual([403, ""]);
  expect(await answer("/fills?instance=a%2Fb")).toEqual(await answer("/fills?instance=nobody"));
  expect((await answer("/fills?instance=a%2Fb&run_id=x"))[0]).toBe(403);
  // neither is a table, nor a name, looked at before
  expect((await answer(there.replace("/fills/", "/nothing/")))[0]).toBe(403);
});

test("without a token there is nothing", async () => {
  const { url } = (await served.list("fills", "", bearer(own))).files[0]!;
  for (const path of ["", "/fills", url]) {
    const response = await served.get(path);
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  }
});

test("what was read with a token is for nobody's cache but the reader's", async () => {
  const { url } = (await served.list("fills", "", bearer(own))).files[0]!;
  const { headers } = await served.get(url, bearer(own));
  expect(headers.get("cache-control")).toBe("private, max-age=3600, immutable");
});

test("a damaged manifest fails the lists it belongs to, and no other", async () => {
  const runs = archive.layout.runsDir;
  await mkdir(join(runs, "broken"));
  await writeFile(join(runs, "broken", "x.json"), "{");
  try {
    expect(await readdir(runs)).toContain("broken");
    const all = await served.get("/fills", bearer(every));
    expect([all.status, await all.json()]).toMatchObject([
      502,
      { error: { message: 'a manifest of instance "broken" is damaged: the list would be incomplete' } },
    ]);
    const one = await served.get("/fills?instance=alpha", bearer(every));
    expect(((await one.json()) as FilesDocument).files.length).toBe(1);
    expect((await served.list("fills", "", bearer(own))).files.length).toBe(1);
  } finally {
    await rm(join(runs, "broken"), { recursive: true });
  }
});
