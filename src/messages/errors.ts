import { EverthreadError } from "../errors.ts";

/**
 * A value that can't be kept as it is: not JSON, or not of a message's shape. Nothing was written.
 * `path` names the offending value, such as `messages[0].content[1].arguments.id`.
 */
export class InvalidMessageError extends EverthreadError {
  readonly path: string;

  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super("invalid_message", `${path}: ${problem}`, options);
    this.path = path;
  }
}
