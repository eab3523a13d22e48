import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Code, ConnectError } from "@connectrpc/connect";
import { connectCodeNames } from "../model/connect-code-names.ts";
import { RunvaultError } from "../model/error.ts";
import { type TableName, tableNamed } from "../model/profile/table.ts";
import type { RunRef } from "../model/source.ts";
import { rowMessage } from "../row/wire/row-message.ts";
import {
  type Asked,
  maxPageBytes,
  type Page,
  type PageShape,
  type RowChange,
  type UnknownField,
} from "../serve/wire-hook.ts";
import type { ArmedFaults } from "./armed-faults.ts";
import type { Fault } from "./fault.ts";
import type { FaultySource } from "./faulty-source.ts";

/** A number that no message has a field for. */
const strangeNumber = 1000;

/** The effects of a server's faults on calls and pages, but not on an answer's bytes. */
export class RpcFaults {
  readonly #faults: ArmedFaults;
  readonly #source: FaultySource;
  /** Pages to send again, each with the token of the page after it. */
  readonly #toRepeat = new Map<Fault, { token: string; page: Page }>();

  constructor(faults: ArmedFaults, source: FaultySource) {
    this.#faults = faults;
    this.#source = source;
  }

  /** Refuses a call for a document or rows, or holds it until `signal` aborts, if an RPC fault says so. */
  async refuse(asked: Asked, signal: AbortSignal): Promise<void> {
    for (const fault of this.#faults.on(asked, ["connect-error", "deadline"])) {
      if (fault.kind === "connect-error" && this.#faults.hit(fault)) {
        // the names are in the order of the codes, which start at 1
        const code: Code = (connectCodeNames as readonly unknown[]).indexOf(fault.code) + 1;
        throw new ConnectError(`refused by fault ${fault.text}`, code);
      }
      if (fault.kind === "deadline" && this.#faults.hit(fault)) {
        if (!signal.aborted) {
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        }
        throw signal.reason;
      }
    }
  }

  /** Refuses the page as if its token had expired, or returns how to make it. */
  async beforePage(place: RunRef & { readonly table: TableName }, number: number): Promise<PageShape> {
    this.#refuseToken(place.table, number);
    const ends = this.#faults.on(place.table, ["cut-clean"]).map(({ at }) => at);
    return { most: ends.length === 0 ? undefined : Math.min(...ends), change: await this.#rowChange(place) };
  }

  #refuseToken(table: TableName, number: number): void {
    for (const fault of this.#faults.on(table, ["token-expired"])) {
      if (fault.at + 1 !== number || !this.#faults.hit(fault)) continue;
      throw new RunvaultError("invalid_argument", `page_token has expired, by fault ${fault.text}`);
    }
  }

  /** Changes to rows on the wire; undefined if there are none. */
  async #rowChange(place: RunRef & { readonly table: TableName }): Promise<RowChange | undefined> {
    const { table } = place;
    const placed: { fault: Fault; row: string | undefined }[] = [];
    for (const fault of this.#faults.on(table, ["unknown-field", "field-twice"])) {
      placed.push({ fault, row: await this.#source.rowAt(place, fault.at) });
    }
    if (placed.length === 0) return undefined;
    return (line, message) => {
      const text = Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString("latin1");
      const hits = placed.filter(({ fault, row }) => row === text && this.#faults.hit(fault));
      if (hits.length === 0) return undefined;
      const writer = new BinaryWriter().raw(message);
      for (const { fault } of hits) {
        if (fault.kind === "unknown-field") writer.tag(strangeNumber, WireType.Varint).uint32(1);
        else setOnceMore(writer, table, fault.column ?? "seq");
      }
      return writer.finish();
    };
  }

  /** The page as sent: the one before if that is repeated; without a token if the listing is cut clean. */
  shown(table: TableName, token: string, page: Page): Page {
    for (const fault of this.#faults.on(table, ["page-repeat"])) {
      const before = this.#toRepeat.get(fault);
      if (fault.at === page.number) this.#toRepeat.set(fault, { token: page.nextToken, page });
      if (fault.at + 1 !== page.number || before?.token !== token || !this.#faults.hit(fault)) continue;
      this.#toRepeat.delete(fault);
      return { ...page, wire: before.page.wire, rows: before.page.rows };
    }
    for (const fault of this.#faults.on(table, ["cut-clean"])) {
      if (fault.at === page.rows && this.#faults.hit(fault)) return { ...page, nextToken: "" };
    }
    return page;
  }

  /** The field that makes a page larger than 4 MiB; undefined if it stays as it is. */
  filling(table: TableName, { number }: Page): UnknownField | undefined {
    for (const fault of this.#faults.on(table, ["page-too-large"])) {
      if (fault.at !== number || !this.#faults.hit(fault)) continue;
      const data = new BinaryWriter().bytes(new Uint8Array(maxPageBytes)).finish();
      return { no: strangeNumber, wireType: WireType.LengthDelimited, data };
    }
    return undefined;
  }
}

function setOnceMore(writer: BinaryWriter, table: TableName, column: string): void {
  const { columns } = tableNamed(table);
  const index = columns.findIndex(({ name }) => name === column);
  const field = rowMessage(tableNamed(table)).fields[index];
  // a fault on every table may name a column that this one lacks
  if (field === undefined) return;
  switch (columns[index]!.kind) {
    case "exact":
    case "string":
      writer.tag(field.number, WireType.LengthDelimited).string("7");
      return;
    case "double":
      writer.tag(field.number, WireType.Bit64).double(7.5);
      return;
    default:
      writer.tag(field.number, WireType.Varint).uint32(77);
  }
}
