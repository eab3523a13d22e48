import type { WireBody } from "../../model/source.ts";

/** The size of one answer. */
export interface AnswerSize {
  readonly rows: number;
  /** Of its text. */
  readonly bytes: number;
  /** On the wire, compressed or not; those of its text where there is no wire. */
  readonly wireBytes: number;
}

/** Hears of one answer's bodies. */
export class AnswerEar {
  #heard: WireBody | undefined;

  readonly onBody = ({ bytes, ms }: WireBody): void => {
    this.#heard = { bytes: bytes + (this.#heard?.bytes ?? 0), ms: ms + (this.#heard?.ms ?? 0) };
  };

  sizeOf(rows: number, bytes: number): AnswerSize {
    return { rows, bytes, wireBytes: this.#heard?.bytes ?? bytes };
  }

  /** How long its bodies took to arrive; undefined where there is no wire. */
  get ms(): number | undefined {
    return this.#heard?.ms;
  }
}
