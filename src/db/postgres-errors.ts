/** What the errors of Postgres and of pg mean: which are ours to retry, and what a person is told. No secrets in any. */
import { EverthreadError, messageOf } from "../errors.ts";
import { ConnectionLostError, LockTimeoutError, StoreError, StoreOpenError } from "./errors.ts";

/** The server gave up this transaction in favour of another: it is undone, and may be tried again at once. */
const UNDONE = ["40001", "40P01"];
/** The server ended the session, and says so: what it had not committed is undone. */
const ENDED = ["57P01", "57P02", "57P03", "57P05", "25P03"];
const LOCK_TIMEOUT = "55P03";
const READ_ONLY = "25006";

/** An ErrorResponse of the server; anything else is of the connection. */
interface ServerError extends Error {
  code: string;
  severity: string;
}

export function isServerError(error: unknown): error is ServerError {
  const { severity, code } = Object(error) as { severity?: unknown; code?: unknown };
  return error instanceof Error && typeof severity === "string" && typeof code === "string";
}

/**
 * Whether what failed so did certainly not commit and may be tried again. It must have come before the answer to COMMIT:
 * a server's messages come in order. Class 08 is a pooler's word for a server that it has lost, which may have committed.
 */
export function mayRetry(error: unknown): boolean {
  return isServerError(error) && [...UNDONE, ...ENDED].includes(error.code);
}

/** The error of an operation whose statements failed. */
export function operationError(error: unknown, lockTimeoutMs: number): EverthreadError {
  if (error instanceof EverthreadError) return error;
  if (!isServerError(error) || error.code.startsWith("08")) {
    return new ConnectionLostError(`The connection to Postgres broke: ${textOf(error)}.`, "unknown", { cause: error });
  }
  if (ENDED.includes(error.code)) {
    return new ConnectionLostError(`Postgres ended the connection: ${error.message}.`, "not_written", { cause: error });
  }
  if (error.code === LOCK_TIMEOUT) {
    return new LockTimeoutError(lockTimeoutMs, { cause: error, option: "lockTimeoutMs" });
  }
  const advice = error.code === READ_ONLY ? " This server is a replica, or read-only: connect to the primary." : "";
  return new StoreError(
    `Postgres refused the operation (${error.code}): ${error.message}. Nothing of it was written.${advice}`,
    { cause: error },
  );
}

/** The error of a connection that could not be made. @param opening whether the store is only being opened */
export function connectError(error: unknown, opening: boolean): EverthreadError {
  if (error instanceof EverthreadError) return error;
  const problem = `No connection to Postgres: ${connectProblem(error)}.`;
  // The error of an invalid URL holds the URL, and with it the password.
  const options = (Object(error) as { code?: unknown }).code === "ERR_INVALID_URL" ? {} : { cause: error };
  return opening ? new StoreOpenError(problem, options) : new ConnectionLostError(problem, "not_written", options);
}

function connectProblem(error: unknown): string {
  const { code } = Object(error) as { code?: unknown };
  const text = textOf(error);
  switch (code) {
    case "28P01":
    case "28000":
      return `it refuses the user or the password (${text}). Check the credentials`;
    case "3D000":
      return `${text}. Create the database, or name another`;
    case "53300":
      return `it has no connection to spare (${text}). Lower maxPoolSize, or put a pooler before it`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the host name is unknown (${text}). Check the host`;
    case "ECONNREFUSED":
    case "ENOENT":
      return `nothing listens there (${text}). Check host and port, and that the server runs`;
    case "ERR_INVALID_URL":
      return "the connection string is no URL. Write postgres://user:password@host:port/database, each part URL-encoded";
    default:
      return text;
  }
}

/** Node's error for a host name with several addresses has no message of its own. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  return messageOf(error);
}
