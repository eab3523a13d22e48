import type { WireBody } from "../../model/source.ts";

/** The size of one answer. */
export interface AnswerSize {
  readonly rows: number;
  /** Bytes of the answer's text. */
  readonly bytes: number;
  /** Bytes on the wire, compressed or not; those of the text if there is no wire. */
  readonly wireBytes: number;
}

/** Adds up the HTTP bodies of one answer. */
export class AnswerEar {
  #heard: WireBody | undefined;

  readonly onBody = ({ bytes, ms }: WireBody): void => {
    this.#heard = { bytes: bytes + (this.#heard?.bytes ?? 0), ms: ms + (this.#heard?.ms ?? 0) };
  };

  sizeOf(rows: number, bytes: number): AnswerSize {
    return { rows, bytes, wireBytes: this.#heard?.bytes ?? bytes };
  }

  /** How long the bodies took to arrive; undefined if there is no wire. */
  get ms(): number | undefined {
    return this.#heard?.ms;
  }
}
