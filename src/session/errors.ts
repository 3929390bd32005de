/** What a session refuses. Each error says what was found, why that is refused, and what to do; nothing was changed. */
import { EverthreadError } from "../errors.ts";

export interface ConfigPlace {
  /** The key, from the top: "persistence.memory_retention.max_archives"; undefined when the text as a whole is at fault. */
  key: string | undefined;
  /** Where it was read from. */
  file?: string | undefined;
  /** The line in the YAML text, from 1. */
  line?: number | undefined;
  /** The column in that line, from 1. */
  column?: number | undefined;
}

/** The configuration can't be taken as it is. `key`, `file`, `line` and `column` say where, as far as it is known. */
export class SessionConfigError extends EverthreadError {
  readonly key: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(place: ConfigPlace, problem: string, options?: { cause?: unknown }) {
    const { key, file, line, column } = place;
    const spot = line === undefined ? "" : `line ${line}${column === undefined ? "" : `, column ${column}`}`;
    const where = [file, spot].filter((part) => part !== undefined && part !== "").join(", ");
    super(
      "session_config",
      `${where === "" ? "" : `${where}: `}${key === undefined ? "" : `${key} `}${problem}`,
      options,
    );
    this.key = key;
    this.file = file;
    this.line = line;
    this.column = column;
  }
}

/** The directory holds both stores. Choosing one would abandon the history in the other, whatever the setting. */
export class SessionAmbiguousError extends EverthreadError {
  readonly sqlite: string;
  readonly json: string;

  constructor(sqlite: string, json: string) {
    super(
      "session_ambiguous",
      `The session has two stores, ${sqlite} and ${json}, and using either would abandon the other's history. Move the one that you don't want out of the directory (with its -wal and -shm files), whatever \`backend\` says.`,
    );
    this.sqlite = sqlite;
    this.json = json;
  }
}

/** The setting names one backend, and the directory holds a store of the other. Nothing is migrated in passing. */
export class SessionBackendMismatchError extends EverthreadError {
  readonly wanted: "sqlite" | "json";
  readonly path: string;

  constructor(wanted: "sqlite" | "json", found: "sqlite" | "json", path: string) {
    super(
      "session_backend_mismatch",
      `\`backend: ${wanted}\` is set, and the session is stored by the ${found} backend in ${path}. Changing the setting migrates nothing: set \`backend: ${found}\` or leave it out, or copy the session into a new directory.`,
    );
    this.wanted = wanted;
    this.path = path;
  }
}

/** There is no session to read. A reader creates nothing. */
export class SessionNotFoundError extends EverthreadError {
  constructor(problem: string) {
    super("session_not_found", `${problem} Reading creates nothing; check the path.`);
  }
}

/** Something of the session's is of the wrong kind, can't be reached, or may not be written. */
export class SessionPathError extends EverthreadError {
  readonly path: string;

  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super("session_path", `${path} ${problem}`, options);
    this.path = path;
  }
}

/** There are parts of a store and the store itself is gone: it was removed, or copied in half. */
export class SessionLeftoverError extends EverthreadError {
  readonly path: string;

  constructor(path: string, missing: string) {
    super(
      "session_leftover",
      `${path} belongs to ${missing}, which is not there: the session was removed or copied in half, and a new one would destroy what is left. Put ${missing} back beside it, or move ${path} away.`,
    );
    this.path = path;
  }
}

/** `restore: never` asks for a new conversation where one is stored. It is not overwritten. */
export class SessionExistsError extends EverthreadError {
  readonly path: string;

  constructor(path: string) {
    super(
      "session_exists",
      `\`restore: never\` is set, and ${path} holds a conversation, which is never overwritten. Choose another directory, move this one away, or set \`restore: if_present\`.`,
    );
    this.path = path;
  }
}

/** Another worker owns the session. `pid`, `host` and `since` are what it wrote about itself, where that can be read. */
export class SessionOwnedError extends EverthreadError {
  readonly directory: string;
  readonly pid: number | undefined;
  readonly host: string | undefined;
  readonly since: Date | undefined;

  constructor(directory: string, owner?: { pid: number; host: string; startedAt: Date }) {
    const who = owner
      ? `process ${owner.pid} on ${owner.host}, since ${owner.startedAt.toISOString()}`
      : "another process, which has not said which";
    super(
      "session_owned",
      `The session in ${directory} is owned by ${who}. One worker at a time writes a session: stop that one first. If it has died, its ownership is gone already; try again.`,
    );
    this.directory = directory;
    this.pid = owner?.pid;
    this.host = owner?.host;
    this.since = owner?.startedAt;
  }
}
