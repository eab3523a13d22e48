import { mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Layout } from "../../src/archive/layout.ts";
import { FolderStore } from "../../src/archive/storage/folder-store.ts";
import { removeLeftovers } from "../../src/archive/storage/remove-leftovers.ts";
import type { Store } from "../../src/archive/storage/store.ts";
import { MemoryStore } from "../fixtures/storage/memory-store.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-storage-"));
  await mkdir(join(folder, "archive"), { mode: 0o700 });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const stores: [string, () => Store][] = [
  ["a folder", () => new FolderStore(new Layout(join(folder, "archive")))],
  ["memory", () => new MemoryStore(join(folder, "cache"))],
];

const key = "data/alpha/r-1/fills.g1.000001.parquet";
const bytes = (text: string) => Buffer.from(text);
const most = 1 << 20;
async function keysOf(store: Store, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const one of store.list(prefix)) keys.push(one.key);
  return keys;
}

describe.each(stores)("%s as a store", (_name, open) => {
  it("gives back what was put, whole or in part", async () => {
    const store = open();
    expect(await store.putIfAbsent(key, bytes("abcdef"))).toEqual(expect.any(String));
    expect(await store.get(key, most)).toEqual(bytes("abcdef"));
    expect(await store.get(key, most, { start: 2, end: 4 })).toEqual(bytes("cd"));
    expect(await store.get(key, most, { start: 4, end: 99 })).toEqual(bytes("ef"));
    expect(await store.get(key, most, { start: 9, end: 99 })).toEqual(bytes(""));
    expect(await readFile(await store.localFile(key), "utf8")).toBe("abcdef");
  });

  it("says that there is nothing, and fails only where a path is wanted", async () => {
    const store = open();
    expect(await store.get(key, most)).toBe(null);
    expect(await store.head(key)).toBe(null);
    expect(await keysOf(store, "data/")).toEqual([]);
    expect(await store.replaceIf(key, bytes("x"), "any")).toBe(null);
    await store.remove([key]);
    await expect(store.localFile(key)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("reads nothing of an object that is larger than allowed", async () => {
    const store = open();
    await store.putIfAbsent(key, bytes("abcdef"));
    await expect(store.get(key, 5)).rejects.toMatchObject({ code: "archive_damaged" });
  });

  it("puts once, whoever is first, and tells the others", async () => {
    const store = open();
    const tokens = await Promise.all(["a", "b", "c"].map((text) => store.putIfAbsent(key, bytes(text))));
    expect(tokens.filter((token) => token !== null)).toHaveLength(1);
    const first = ["a", "b", "c"][tokens.findIndex((token) => token !== null)]!;
    expect(await store.get(key, most)).toEqual(bytes(first));
    expect((await store.head(key))?.token).toBe(tokens.find((token) => token !== null));
  });

  it("puts several, and tells of each", async () => {
    const store = open();
    await store.putIfAbsent("data/b", bytes("old"));
    const taken = await store.putAllIfAbsent(
      ["a", "b", "c"].map((name) => ({ key: `data/${name}`, body: bytes(name) })),
    );
    expect(taken).toEqual(["data/b"]);
    expect(await store.get("data/b", most)).toEqual(bytes("old"));
    expect(await store.get("data/c", most)).toEqual(bytes("c"));
  });

  it("stores what came before an iterable that fails", async () => {
    const store = open();
    function* failing() {
      yield { key: "data/a", body: bytes("a") };
      throw new Error("no more");
    }
    await expect(store.putAllIfAbsent(failing())).rejects.toThrow("no more");
    expect(await store.get("data/a", most)).toEqual(bytes("a"));
  });

  it("tells of the moment before an object is there", async () => {
    const store = open();
    const kill = () => {
      throw new Error("killed");
    };
    await expect(store.putIfAbsent(key, bytes("1"), kill)).rejects.toThrow("killed");
    expect(await store.head(key)).toBe(null);
    const token = (await store.putIfAbsent(key, bytes("1")))!;
    await expect(store.replaceIf(key, bytes("2"), token, kill)).rejects.toThrow("killed");
    expect(await store.get(key, most)).toEqual(bytes("1"));
    expect((await store.head(key))?.token).toBe(token);
  });

  it("names what stands right below a prefix", async () => {
    const store = open();
    for (const one of ["data/b", "data/a/y", "data/a/x", "top"]) await store.putIfAbsent(one, bytes(one));
    expect(await store.names("")).toEqual(["data/", "top"]);
    expect(await store.names("data/")).toEqual(["a/", "b"]);
    expect(await store.names("data/a/")).toEqual(["x", "y"]);
    expect(await store.names("nothing/")).toEqual([]);
    await store.remove(["data/a/x", "data/a/y"]);
    expect(await store.names("data/")).toEqual(["b"]);
    expect(await store.head("top")).toMatchObject({ key: "top", size: 3 });
  });

  it("takes local files, and leaves those that it does not store", async () => {
    const store = open();
    const [one, two] = [join(folder, "one"), join(folder, "two")];
    await writeFile(one, "one");
    await writeFile(two, "two");
    expect(await store.putIfAbsent(key, { syncedFile: one })).not.toBe(null);
    expect(await store.putIfAbsent(key, { syncedFile: two })).toBe(null);
    expect(await store.get(key, most)).toEqual(bytes("one"));
    expect(await readFile(two, "utf8")).toBe("two");
  });

  it("replaces what has the token, and nothing else", async () => {
    const store = open();
    const first = (await store.putIfAbsent(key, bytes("1")))!;
    const second = await store.replaceIf(key, bytes("22"), first);
    expect(second).not.toBe(null);
    expect(second).not.toBe(first);
    expect(await store.replaceIf(key, bytes("3"), first)).toBe(null);
    expect(await store.get(key, most)).toEqual(bytes("22"));
    expect(await store.head(key)).toMatchObject({ key, size: 2, token: second });
    await store.remove([key]);
    expect(await store.replaceIf(key, bytes("4"), second!)).toBe(null);
  });

  it("lists by prefix in the order of keys, with size and time", async () => {
    const store = open();
    const before = BigInt(Date.now() - 5000) * 1_000_000n;
    // a folder sorts by its slash, behind "." and "-"
    const keys = ["data/a-b/x", "data/a.b", "data/a/x", "data/a/y", "data/b", "runs/a"];
    for (const one of [...keys].reverse()) await store.putIfAbsent(one, bytes(one));
    expect(await keysOf(store, "data/")).toEqual(keys.slice(0, 5));
    expect(await keysOf(store, "data/a/")).toEqual(["data/a/x", "data/a/y"]);
    expect(await keysOf(store, "nothing/")).toEqual([]);
    for await (const { size, modifiedAt, key: one } of store.list("data/")) {
      expect(size).toBe(one.length);
      expect(modifiedAt).toBeGreaterThan(before);
    }
    await store.remove(["data/a/x", "data/nothing"]);
    expect(await keysOf(store, "data/a/")).toEqual(["data/a/y"]);
  });
});

describe("a folder as a store", () => {
  const open = () => new FolderStore(new Layout(join(folder, "archive")));

  it("has what a killed writer left named and removed, and not listed", async () => {
    const store = open();
    await store.putIfAbsent("runs/a/1.json", bytes("1"));
    for (const name of [".1.json.1-1.part", ".2.json.1-1.part"]) {
      await writeFile(join(folder, "archive", "runs", "a", name), "");
    }
    expect(await keysOf(store, "runs/")).toEqual(["runs/a/1.json"]);
    await removeLeftovers(store, "runs/a/1.json");
    expect(await store.names("runs/a/")).toEqual([".2.json.1-1.part", "1.json"]);
  });

  it("tells a file from itself after a write in place, whatever its time says", async () => {
    const store = open();
    await store.putIfAbsent(key, bytes("abc"));
    const path = await store.localFile(key);
    const tokenAtOldTime = async () => {
      await utimes(path, 1, 1);
      return (await store.head(key))?.token;
    };
    const before = await tokenAtOldTime();
    // longer than a tick of the file system's clock
    await pause(20);
    await writeFile(path, "abd");
    expect(await tokenAtOldTime()).not.toBe(before);
  });

  it("removes what another empties meanwhile", async () => {
    const store = open();
    await store.putAllIfAbsent(["a", "b"].map((name) => ({ key: `runs/alpha/${name}`, body: bytes("x") })));
    // many names, so that the other is the last, and takes the folder away
    const gone = Array.from({ length: 200 }, (_, index) => `runs/alpha/gone-${index}`);
    await Promise.all([store.remove(["runs/alpha/a", ...gone]), store.remove(["runs/alpha/b"])]);
    expect(await keysOf(store, "runs/")).toEqual([]);
  });

  it("is not led out of itself, and gives nothing but files", async () => {
    const store = open();
    await store.putIfAbsent("data/a/x", bytes("x"));
    const outside = join(folder, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "x"), "secret");
    await symlink(join(outside, "x"), join(folder, "archive", "data", "a", "link"));
    await symlink(outside, join(folder, "archive", "data", "away"));
    for (const one of ["data/a/link", "data/a", "data/away/x"]) {
      await expect(store.get(one, most), one).rejects.toMatchObject({ code: "archive_damaged" });
      await expect(store.head(one), one).rejects.toMatchObject({ code: "archive_damaged" });
      await expect(store.localFile(one), one).rejects.toMatchObject({ code: "archive_damaged" });
    }
    await expect(store.putIfAbsent("data/away/y", bytes("y"))).rejects.toMatchObject({
      code: "archive_damaged",
    });
    await expect(store.remove(["data/away/x"])).rejects.toMatchObject({ code: "archive_damaged" });
    await expect(keysOf(store, "data/away/")).rejects.toMatchObject({ code: "archive_damaged" });
    // what is no object is for `names`
    expect(await keysOf(store, "data/")).toEqual(["data/a/x"]);
    await expect(store.names("data/away/")).rejects.toMatchObject({ code: "archive_damaged" });
    await store.remove(["data/a/link"]);
    expect(await store.names("data/a/")).toEqual(["x"]);
    expect(await readFile(join(outside, "x"), "utf8")).toBe("secret");
    for (const none of ["", "../x", "/etc/passwd", "data//x", "data/../x", "data/"])
      await expect(store.get(none, most)).rejects.toMatchObject({ code: "internal" });
  });
});
