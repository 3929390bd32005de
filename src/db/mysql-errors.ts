/** What the driver's errors mean: whether the connection is gone, whether trying again is safe, and what to tell people. */
import { EverthreadError, messageOf } from "../errors.ts";
import { ConnectionLostError, StoreError, StoreOpenError, ValueTooLargeError, wrapDriverError } from "./errors.ts";

const LOCK_WAIT_TIMEOUT = 1205;
const DEADLOCK = 1213;
const PACKET_TOO_LARGE = 1153;

/** A server that is shutting down, or that ended this connection: nothing can be asked of it any more. */
const LOST_NUMBERS = new Set([1053, 1152, 1153, 1158, 1159, 1160, 1161, 1927, 2006, 2013, 4031]);
const LOST_CODES = new Set([
  "PROTOCOL_CONNECTION_LOST",
  "PROTOCOL_SEQUENCE_TIMEOUT",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
]);

/** A replica, or a primary that has become one: another connection may reach the new primary. */
const READ_ONLY_NUMBERS = new Set([1290, 1792, 1836]);

const UNREACHABLE_CODES = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EACCES",
  ...LOST_CODES,
]);

interface DriverError {
  code?: unknown;
  errno?: unknown;
  fatal?: unknown;
}

const partsOf = (error: unknown): DriverError => (typeof error === "object" && error !== null ? error : {});

/** Whether the server ended the transaction, or gave up waiting in it, because of another one: it can be run again. */
export function isLockFailure(error: unknown): boolean {
  const { errno } = partsOf(error);
  return errno === DEADLOCK || errno === LOCK_WAIT_TIMEOUT;
}

/** Whether the connection is of no use any more. */
export function isLost(error: unknown): boolean {
  if (error instanceof EverthreadError) return false;
  const { code, errno, fatal } = partsOf(error);
  return (
    fatal === true ||
    LOST_NUMBERS.has(errno as number) ||
    LOST_CODES.has(code as string) ||
    // The driver says so without a code when a connection was found closed.
    (error instanceof Error && /connection is in closed state/i.test(error.message))
  );
}

export function isReadOnly(error: unknown): boolean {
  return READ_ONLY_NUMBERS.has(partsOf(error).errno as number);
}

export function isTooLarge(error: unknown): boolean {
  return partsOf(error).errno === PACKET_TOO_LARGE;
}

/** Why no connection could be made, when it was the network and not a refusal. */
export function unreachable(error: unknown, server: string): ConnectionLostError | undefined {
  if (!UNREACHABLE_CODES.has(partsOf(error).code as string)) return undefined;
  return new ConnectionLostError(`The server ${server} can't be reached: ${reasonOf(error)}.`, "not_written", {
    cause: error,
  });
}

/** The error of an operation, for people. @param limit the server's max_allowed_packet, in bytes */
export function explain(error: unknown, limit: number): unknown {
  if (error instanceof EverthreadError) return error;
  if (isTooLarge(error)) return new ValueTooLargeError("A value", undefined, limit, { cause: error });
  if (isReadOnly(error)) {
    return new StoreError(
      `The server takes no writes: ${messageOf(error)}. Nothing was written. Connect to the primary.`,
      { cause: error },
    );
  }
  return wrapDriverError(error);
}

/** Why a store can't be opened. The driver's messages name the user and the host, and never the password. */
export function explainOpen(error: unknown, server: string): unknown {
  const cause = error instanceof EverthreadError ? error.cause : error;
  if (cause === undefined || cause instanceof EverthreadError) return error;
  return new StoreOpenError(`The MySQL server ${server} can't be used: ${reasonOf(cause)}.`, { cause });
}

/** A refused connection to a name with several addresses is an AggregateError without a message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  return messageOf(error) || String(partsOf(error).code);
}
