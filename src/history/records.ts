/** The door: what every change and message passes before it is written, the same on every backend. */
import { InvalidArgumentError } from "../errors.ts";
import { checkId } from "../util/ids.ts";
import { checkLimit } from "../util/limit.ts";
import { InvalidRecordError } from "./errors.ts";
import type {
  HistoryListOptions,
  HistoryRecord,
  NewHistoryRecord,
  NewWindowMessage,
  WindowMessage,
} from "./history.ts";
import { newRecordId } from "./record-id.ts";
import { admitInstant, type Clock, instantOf, storedTime } from "./times.ts";

/** How many messages a window holds, and how many are read, unless the caller says otherwise: Mem0's number. */
const WINDOW = 10;
/** Mem0 makes a scope of three ids and their names. */
const MAX_SCOPE_LENGTH = 1024;

/** The fields of a change, which are the columns of Mem0's table. */
export const HISTORY_COLUMNS = [
  "id",
  "memory_id",
  "old_memory",
  "new_memory",
  "event",
  "created_at",
  "updated_at",
  "is_deleted",
  "actor_id",
  "role",
] as const satisfies (keyof HistoryRecord)[];
const RECORD_KEYS: ReadonlySet<string> = new Set(HISTORY_COLUMNS);
const MESSAGE_KEYS: ReadonlySet<string> = new Set([
  "role",
  "content",
  "name",
  "created_at",
] satisfies (keyof WindowMessage)[]);
const LIST_KEYS: readonly string[] = [
  "memoryId",
  "actorId",
  "event",
  "since",
  "until",
  "after",
  "limit",
] satisfies (keyof HistoryListOptions)[];

export const checkMemoryId = (value: unknown): string => checkId(value, "memory id");
export const checkScope = (value: unknown): string => checkId(value, "scope", MAX_SCOPE_LENGTH);
export const checkKeep = (value: unknown): number => checkLimit(value, "keep", WINDOW);
export const checkWindowLimit = (value: unknown): number => checkLimit(value, "limit", WINDOW);

/** A change as it will be stored. @param path how an error names it @throws InvalidRecordError, InvalidIdError */
export function admitRecord(value: NewHistoryRecord, clock: Clock, path = "record"): HistoryRecord {
  checkKeys(value, RECORD_KEYS, path);
  const { id, created_at } = value;
  const event = requiredText(value.event, path, "event");
  const { is_deleted = event === "DELETE" } = value;
  if (typeof is_deleted !== "boolean") throw new InvalidRecordError(`${path}.is_deleted`, "must be true or false.");
  return {
    id: id === undefined ? newRecordId() : checkId(id, "id of a change"),
    memory_id: checkMemoryId(value.memory_id),
    old_memory: optionalText(value.old_memory, path, "old_memory"),
    new_memory: optionalText(value.new_memory, path, "new_memory"),
    event,
    created_at: created_at === undefined ? clock.next() : optionalTime(value.created_at, path, "created_at"),
    updated_at: optionalTime(value.updated_at, path, "updated_at"),
    is_deleted,
    actor_id: optionalText(value.actor_id, path, "actor_id"),
    role: optionalText(value.role, path, "role"),
  };
}

/** As {@link admitRecord} for a batch; the error names the record by its index. */
export function admitRecords(values: readonly NewHistoryRecord[], clock: Clock): HistoryRecord[] {
  if (!Array.isArray(values)) throw new InvalidRecordError("records", "must be an array of changes.");
  return values.map((value, i) => admitRecord(value, clock, `records[${i}]`));
}

/** Messages as they will be stored. @throws InvalidRecordError */
export function admitMessages(values: readonly NewWindowMessage[], clock: Clock): WindowMessage[] {
  if (!Array.isArray(values)) throw new InvalidRecordError("messages", "must be an array of messages.");
  return values.map((value: NewWindowMessage, i) => {
    const path = `messages[${i}]`;
    checkKeys(value, MESSAGE_KEYS, path);
    if (value.content === undefined) throw new InvalidRecordError(`${path}.content`, "is missing.");
    return {
      role: requiredText(value.role, path, "role"),
      content: optionalText(value.content, path, "content"),
      name: optionalText(value.name, path, "name"),
      created_at: value.created_at === undefined ? clock.next() : optionalTime(value.created_at, path, "created_at"),
    };
  });
}

/** What a listing takes, with times as instants. */
export interface CheckedList {
  memoryId: string | undefined;
  actorId: string | null | undefined;
  event: string | undefined;
  since: string | undefined;
  until: string | undefined;
  after: number;
  limit: number;
}

/** @throws InvalidArgumentError, InvalidIdError, InvalidRecordError for a time that is none */
export function checkList(options: HistoryListOptions): CheckedList {
  const unknown = Object.keys(options).find((key) => !LIST_KEYS.includes(key));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`list() has no option ${unknown}. It has ${LIST_KEYS.join(", ")}.`);
  }
  const { memoryId, actorId, event, since, until, after = 0, limit } = options;
  if (!Number.isSafeInteger(after) || after < 0) {
    throw new InvalidArgumentError(`after must be a position, a whole number of 0 or more, not ${String(after)}.`);
  }
  return {
    memoryId: memoryId === undefined ? undefined : checkMemoryId(memoryId),
    actorId: actorId === undefined ? undefined : optionalText(options.actorId, "", "actorId"),
    event: event === undefined ? undefined : requiredText(options.event, "", "event"),
    since: since === undefined ? undefined : admitInstant(since, "since"),
    until: until === undefined ? undefined : admitInstant(until, "until"),
    after,
    limit: checkLimit(limit),
  };
}

/** Whether a change is within the times of a listing. */
export function isWithin(record: HistoryRecord, { since, until }: CheckedList): boolean {
  if (since === undefined && until === undefined) return true;
  const at = changeTime(record);
  return at !== undefined && (since === undefined || at >= since) && (until === undefined || at < until);
}

/** When a change was made, as an instant; undefined when its record has no time. */
export function changeTime(record: HistoryRecord): string | undefined {
  return instantOf(record.updated_at) ?? instantOf(record.created_at);
}

function checkKeys(value: object, known: ReadonlySet<string>, path: string): void {
  if (typeof value !== "object" || value === null) throw new InvalidRecordError(path, "must be an object.");
  for (const key of Object.keys(value)) {
    if (!known.has(key)) {
      throw new InvalidRecordError(`${path}.${key}`, `is not kept. There are ${[...known].join(", ")}.`);
    }
  }
}

function requiredText(text: unknown, path: string, key: string): string {
  if (typeof text === "string" && text !== "") return text.toWellFormed();
  throw new InvalidRecordError(joined(path, key), "must be text, and not empty.");
}

function optionalText(text: unknown, path: string, key: string): string | null {
  if (text === undefined || text === null) return null;
  if (typeof text === "string") return text.toWellFormed();
  throw new InvalidRecordError(joined(path, key), `must be text or null, not ${typeof text}.`);
}

function optionalTime(time: unknown, path: string, key: string): string | null {
  return time === undefined || time === null ? null : storedTime(admitInstant(time, joined(path, key)));
}

function joined(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
