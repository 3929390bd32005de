/**
 * The base of every error that Everthread throws on purpose.
 *
 * A message says what happened, why, and what to do. `code` is stable: programs may branch on it,
 * and it survives a bundler or a second copy of the package, which `instanceof` does not.
 */
export class EverthreadError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** A value handed to Everthread is of the wrong kind, such as a negative page limit. */
export class InvalidArgumentError extends EverthreadError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("invalid_argument", message, options);
  }
}

/** A thread, run or question id is not 1 to 255 characters of well-formed text without U+0000. */
export class InvalidIdError extends EverthreadError {
  constructor(message: string) {
    super("invalid_id", message);
  }
}

/** The message of anything thrown, which need not be an Error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
