/**
 * Times as Mem0 keeps them: what Python's `datetime.isoformat()` gives in UTC, to the microsecond, without the fraction
 * when it is zero. Others are compared by instant, whatever form they are in.
 */

import { InvalidRecordError } from "./errors.ts";

const FORM = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:Z|([+-])(\d\d):?(\d\d)?)?)?$/i;
const NO_FRACTION = ".000000";

/**
 * A text time as an instant: UTC, always of one length, so that instants are ordered as their texts are. Text without an
 * offset is UTC. Undefined when it is no time, or not of the years 1 to 9999.
 */
export function instantOf(text: string | null): string | undefined {
  const parts = text === null ? null : FORM.exec(text);
  if (!parts) return undefined;
  // A time without an hour has undefined parts.
  const year = Number(parts[1]);
  const day = Number(parts[3]);
  if (year === 0 || day === 0 || day > daysIn(year, Number(parts[2]))) return undefined;
  const hour = parts[4] ?? "00";
  const minute = parts[5] ?? "00";
  const second = parts[6] ?? "00";
  if (hour > "23" || minute > "59" || second > "59") return undefined;
  const seconds = `${parts[1]}-${parts[2]}-${parts[3]}T${hour}:${minute}:${second}`;
  const micros = (parts[7] ?? "").padEnd(6, "0").slice(0, 6);
  const offset = Number(parts[9] ?? 0) * 60 + Number(parts[10] ?? 0);
  if (offset === 0) return `${seconds}.${micros}`;
  const date = new Date(`${seconds}Z`);
  date.setUTCMinutes(date.getUTCMinutes() - (parts[8] === "-" ? -offset : offset));
  return withFraction(date, micros);
}

const DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** 0 for what is no month. */
function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return DAYS[month] ?? 0;
}

function withFraction(date: Date, micros: string): string | undefined {
  if (!(date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999)) return undefined;
  return `${date.toISOString().slice(0, 19)}.${micros}`;
}

/** A time that was handed in, as an instant. @throws InvalidRecordError when it is none */
export function admitInstant(value: unknown, path: string): string {
  let instant: string | undefined;
  if (typeof value === "string") instant = instantOf(value);
  else if (typeof value === "number" || value instanceof Date) {
    const date = new Date(value);
    instant = withFraction(date, `${String(date.getUTCMilliseconds()).padStart(3, "0")}000`);
  }
  if (instant !== undefined) return instant;
  throw new InvalidRecordError(
    path,
    "must be a Date, milliseconds since 1970, or text in ISO 8601, of the years 1 to 9999.",
  );
}

/** An instant as it is stored. */
export function storedTime(instant: string): string {
  return `${instant.endsWith(NO_FRACTION) ? instant.slice(0, -NO_FRACTION.length) : instant}+00:00`;
}

/**
 * Gives the present time, each time a later one: Mem0 orders by time, so what one call writes must not share one. A
 * clock that was set back by more than a second is followed.
 */
export class Clock {
  #last = 0;

  next(): string {
    const now = microseconds();
    this.#last = now > this.#last || this.#last - now > 1_000_000 ? now : this.#last + 1;
    const micros = String(this.#last % 1_000_000).padStart(6, "0");
    return storedTime(`${new Date(this.#last / 1000).toISOString().slice(0, 19)}.${micros}`);
  }
}

/** Since 1970. The part of a millisecond is that of the process's own clock, as long as the two agree on the rest. */
function microseconds(): number {
  const wall = Date.now() * 1000;
  const fine = Math.floor((performance.timeOrigin + performance.now()) * 1000);
  return fine >= wall && fine < wall + 1000 ? fine : wall;
}
