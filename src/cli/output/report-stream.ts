import type { Session } from "../process/session.ts";

/**
 * A job's report on standard output: as text, as JSON lines, or, with plain --json, as one document at the end. A
 * closed or failing output does not end the job; a failure is thrown at the end.
 */
export class ReportStream {
  readonly #session: Session;
  readonly #kept = new Map<string, object[]>();
  #failure: unknown;
  #before: "nothing" | "line" | "block" = "nothing";

  constructor(session: Session) {
    this.#session = session;
  }

  /** Prints one item now; an empty text is left out. */
  async tell(type: string, body: () => object, text: () => string): Promise<void> {
    const { json, globals } = this.#session;
    if (globals.jsonLines) await this.#print(`${JSON.stringify({ type, ...body() })}\n`);
    else if (json) this.#keep(type, body());
    else await this.#printText(text());
  }

  /** Prints text that JSON has elsewhere. */
  async say(text: string): Promise<void> {
    if (!this.#session.json) await this.#printText(text);
  }

  /** Prints the totals and ends. `document` gets all items by type. Throws the output's earlier failure. */
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

  /** A blank line separates items of several lines from their neighbours. */
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
