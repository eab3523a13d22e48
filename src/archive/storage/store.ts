import type { Nanoseconds } from "../../model/time.ts";

/**
 * Where an archive's committed files are: a folder, or anything else with these few operations. It knows nothing about
 * runs or tables. A key is a path of names separated by slashes, each as from `pathName`.
 *
 * An object is durable once put has returned. A failed condition is a result, not an error: somebody else was faster.
 * Errors are the store's own, as RunvaultErrors with the key as place.
 */
export interface Store {
  /**
   * The bytes of an object, or those from `start` to `end`; null if there is none. Throws `archive_damaged` if it has
   * more than `most` bytes, before reading any.
   */
  get(key: string, most: number, range?: ByteSpan): Promise<Buffer | null>;
  /** An object's facts without its bytes; null if there is none. */
  head(key: string): Promise<StoredObject | null>;
  /**
   * The objects whose keys begin with the prefix, which ends with a slash, ordered by their keys' bytes. Leaves out
   * anything that is not an object.
   */
  list(prefix: string): AsyncIterable<StoredObject>;
  /**
   * The names directly below a prefix ("" or ending with a slash), ordered by bytes. Includes things that are not
   * objects, such as leftovers of killed writers; a name with more below it ends with a slash. Says nothing else about
   * them, so thousands cost one request.
   */
  names(prefix: string): Promise<string[]>;
  /**
   * Stores an object under a free key, and returns its token; null, without any change, if the key is taken. `written`
   * is called when the bytes are written but not yet an object: a test kills the process there.
   */
  putIfAbsent(key: string, body: Body, written?: () => void): Promise<string | null>;
  /**
   * The same for several objects, for a caller that alone writes below their prefixes: a job has its run's lock. May
   * store each before taking the next from the iterable. Returns the keys that already existed; all others are stored.
   */
  putAllIfAbsent(objects: Iterable<NewObject>): Promise<string[]>;
  /**
   * Replaces the object that has this token, and returns the new token; null, without any change, if the object has
   * changed or is gone.
   */
  replaceIf(key: string, body: Uint8Array, token: string, written?: () => void): Promise<string | null>;
  /** Removes the objects under these keys, and anything else there; durable once this has returned. */
  remove(keys: readonly string[]): Promise<void>;
  /** A local path with the object's bytes, for readers of files such as DuckDB. Throws ENOENT if there is none. */
  localFile(key: string): Promise<string>;
  /** The object's name for people. */
  nameOf(key: string): string;
}

/** Bytes from `start` to `end`, exclusive. */
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
  /** Identifies this version of the object; opaque. */
  readonly token: string;
}

export interface NewObject {
  readonly key: string;
  readonly body: Body;
}

/** Bytes, or a synced local file, which the store may move away. */
export type Body = Uint8Array | { readonly syncedFile: string };
