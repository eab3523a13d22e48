import { RunvaultError } from "../../model/error.ts";
import { type Nanoseconds, parseTime, wallClock } from "../../model/time.ts";

/**
 * Parses a clock: `wall`; `TIME`, which stands still; or `TIME*SPEED`, which starts at TIME now and runs SPEED times as
 * fast as the wall clock. Throws `invalid_argument`.
 */
export function clockFrom(text: string, wall: () => Nanoseconds = wallClock): () => Nanoseconds {
  if (text === "wall") return wall;
  const [time = "", speedText] = text.split("*");
  const start = parseTime(time);
  if (speedText === undefined) return () => start;
  if (!/^[1-9]\d{0,8}$/.test(speedText)) {
    throw new RunvaultError(
      "invalid_argument",
      `invalid clock ${JSON.stringify(text)}: SPEED must be a whole number from 1`,
      {
        hint: "Write wall, TIME or TIME*SPEED, such as 2024-01-01T00:00:00Z*60.",
      },
    );
  }
  const speed = BigInt(speedText);
  const begun = wall();
  return () => start + (wall() - begun) * speed;
}
