import type { Session } from "../process/session.ts";

/**
 * What a job tells on standard output while it goes on: as text, as objects a line, or, with plain --json, as one document
 * at its end. A reader that leaves, or an output that fails, ends no job: the latter is thrown at the end.
 */
export class ReportStream {
  readonly #session: Session;
  readonly #kept = new Map<string, object[]>();
  #failure: unknown;
  #before: "nothing" | "line" | "block" = "nothing";

  constructor(session: Session) {
    this.#session = session;
  }

  /** Tells one thing, now; an empty text is none. */
  async tell(type: string, body: () => object, text: () => string): Promise<void> {
    const { json, globals } = this.#session;
    if (globals.jsonLines) await this.#print(`${JSON.stringify({ type, ...body() })}\n`);
    else if (json) this.#keep(type, body());
    else await this.#printText(text());
  }

  /** Says what JSON has in other places. */
  async say(text: string): Promise<void> {
    if (!this.#session.json) await this.#printText(text);
  }

  /** Tells what all came to, and ends. `document` is given what was told of each type. Throws what the output failed with. */
  async end(
    body: object,
    document: (of: (type: string) => readonly object[]) => object,
    text: () => string,
  ): Promise<void> {
    const { json, globals } = this.#session;
    if (globals.jsonLines || !json) await this.tell("totals", () => body, text);
    else
      await this.#print(
        `${JSON.stringify(
          document((type) => this.#kept.get(type) ?? []),
          null,
          2,
        )}\n`,
      );
    if (this.#failure !== undefined) throw this.#failure;
  }

  #keep(type: string, body: object): void {
    const kept = this.#kept.get(type);
    if (kept === undefined) this.#kept.set(type, [body]);
    else kept.push(body);
  }

  /** A blank line parts what has several lines from what is beside it. */
  async #printText(text: string): Promise<void> {
    if (text === "") return;
    const kind = text.indexOf("\n") === text.length - 1 ? "line" : "block";
    const isApart = this.#before !== "nothing" && (kind === "block" || this.#before === "block");
    this.#before = kind;
    await this.#print(`${isApart ? "\n" : ""}${text}`);
  }

  async #print(text: string): Promise<void> {
    if (this.#failure !== undefined) return;
    try {
      await this.#session.print(text);
    } catch (error) {
      this.#failure = error;
    }
  }
}
