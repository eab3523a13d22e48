import type { Nanoseconds } from "../../model/time.ts";

/**
 * Where the committed files of an archive are: a folder, or whatever else can do these few things. Nothing of it is known
 * of runs or tables. A key is a path of names between slashes, each as `pathName` makes it.
 *
 * What a put has returned of is durable. A condition that does not hold is a value, not an error: somebody else was faster.
 * Errors are of the store itself, as RunvaultErrors with the key's place.
 */
export interface Store {
  /**
   * The bytes of an object, or those from `start` up to `end`; null where there is none. Throws `archive_damaged` where it
   * has more than `most` bytes, before any is read.
   */
  get(key: string, most: number, range?: ByteSpan): Promise<Buffer | null>;
  /** What is known of an object without its bytes; null where there is none. */
  head(key: string): Promise<StoredObject | null>;
  /**
   * The objects whose keys begin with the prefix, which ends with a slash, in the order of their keys' bytes. What stands
   * there and is no object is left out.
   */
  list(prefix: string): AsyncIterable<StoredObject>;
  /**
   * What stands right below a prefix, "" or one that ends with a slash, in the order of names' bytes: what is no object as
   * well, as what killed writers left, and with a slash behind its name what has more below. Nothing is said of any, so
   * that thousands cost one question.
   */
  names(prefix: string): Promise<string[]>;
  /**
   * Stores an object under a key that is free, and gives its token; null, and nothing is done, where the key is taken.
   * `written` is called when the bytes are on their way and not yet an object: a test kills the process there.
   */
  putIfAbsent(key: string, body: Body, written?: () => void): Promise<string | null>;
  /**
   * The same for several, by whoever alone puts below their prefixes: a job has its run's lock. May store each before it
   * takes the next from the iterable. Gives the keys that were taken: the others are stored whatever becomes of these.
   */
  putAllIfAbsent(objects: Iterable<NewObject>): Promise<string[]>;
  /**
   * Stores an object in the place of the one that has this token, and gives the new token; null, and nothing is done,
   * where the object is another by now, or is gone.
   */
  replaceIf(key: string, body: Uint8Array, token: string, written?: () => void): Promise<string | null>;
  /** Removes what is there under these keys, and what is no object but stands there; it stays away, once this has returned. */
  remove(keys: readonly string[]): Promise<void>;
  /** A path on this machine that has the object's bytes, for readers of files, as DuckDB is. Throws ENOENT where there is none. */
  localFile(key: string): Promise<string>;
  /** What people know the object by. */
  nameOf(key: string): string;
}

/** Bytes from `start` up to, not with, `end`. */
export interface ByteSpan {
  readonly start: number;
  readonly end: number;
}

export interface StoredObject {
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  /** By the store's clock. */
  readonly modifiedAt: Nanoseconds;
  /** Tells the object from any that takes its place. What it is made of is the store's affair. */
  readonly token: string;
}

export interface NewObject {
  readonly key: string;
  readonly body: Body;
}

/** Bytes, or a file on this machine, which has been synced. The store may take the file away, and need not. */
export type Body = Uint8Array | { readonly syncedFile: string };
