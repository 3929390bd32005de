/** Ids: how new ones are made, and which ones are taken. Ids are data, compared by code point and never folded. */
import { randomUUID } from "node:crypto";
import { InvalidIdError } from "../errors.ts";

/** The longest id of any kind, in characters (code points): the width of CubeLoop's MySQL columns. */
export const MAX_ID_LENGTH = 255;

/** The longest id of a run begun here, in characters: `cubepi_runs.run_id` is VARCHAR(64). */
export const MAX_RUN_ID_LENGTH = 64;

/** A new random id of 32 hexadecimal digits, the form that CubeLoop uses as well. */
export function newId(): string {
  return randomUUID().replaceAll("-", "");
}

/**
 * Checks an id and gives it back.
 *
 * @param kind what the id names, for the error: "thread id", "run id", "question id"
 * @param max the longest length in characters (Default: 255)
 * @throws InvalidIdError when it is not text, empty, too long, ill-formed, or holds U+0000
 */
export function checkId(value: unknown, kind: string, max = MAX_ID_LENGTH): string {
  if (typeof value !== "string") {
    throw new InvalidIdError(`The ${kind} must be a string, not ${value === null ? "null" : typeof value}.`);
  }
  if (value === "") throw new InvalidIdError(`The ${kind} is empty. Give it 1 to ${max} characters.`);
  // A string has no more code points than code units, so most ids are settled without counting.
  if (value.length > max) {
    const length = [...value].length;
    if (length > max) {
      throw new InvalidIdError(`The ${kind} has ${length} characters; at most ${max} fit on every backend.`);
    }
  }
  if (value.includes("\0")) throw new InvalidIdError(`The ${kind} holds U+0000, which no id may.`);
  if (!value.isWellFormed()) {
    throw new InvalidIdError(
      `The ${kind} is not well-formed Unicode: it holds half of a surrogate pair. Two such ids could become one in storage.`,
    );
  }
  return value;
}

export const checkThreadId = (value: unknown): string => checkId(value, "thread id");
export const checkRunId = (value: unknown): string => checkId(value, "run id");
export const checkNewRunId = (value: unknown): string => checkId(value, "run id", MAX_RUN_ID_LENGTH);
/** As checkRunId, for what may belong to no run: then null. */
export const checkOptionalRunId = (value: unknown): string | null =>
  value === null || value === undefined ? null : checkRunId(value);
export const checkQuestionId = (value: unknown): string => checkId(value, "question id");

/** Orders two strings by code point, as UTF-8 databases do; JavaScript's own order differs above U+D7FF. */
export function compareCodePoints(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) {
      const astral = Number(isSurrogate(x)) - Number(isSurrogate(y));
      return astral !== 0 ? astral : x - y;
    }
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
