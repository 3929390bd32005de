/** The engines under test, each with stores that are new, or empty again, for every sequence. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { fastDir } from "./fuzz.ts";

export interface FuzzStore {
  readonly checkpointer: Checkpointer;
  /** Closes the store and opens it again, as a later program would. */
  reopen(): Promise<void>;
  /** Closes it and removes what is in it. */
  dispose(): Promise<void>;
}

/** Where an engine differs by its nature, as its page in docs/ says. All else must be equal. */
export interface Nature {
  /** Objects come back with their keys in another order. */
  readonly sortsKeys: boolean;
  /** Times have no milliseconds. */
  readonly wholeSeconds: boolean;
  /** A fork whose parent was deleted has none. */
  readonly forgetsParents: boolean;
  /** The run of a question has at most 64 characters. */
  readonly shortQuestionRuns: boolean;
}

export interface Engine {
  readonly name: string;
  readonly nature: Nature;
  make(): Promise<FuzzStore>;
}

const SERVER = { sortsKeys: true, forgetsParents: true };
const PLAIN: Nature = { sortsKeys: false, wholeSeconds: false, forgetsParents: false, shortQuestionRuns: false };

class Store implements FuzzStore {
  checkpointer: Checkpointer;
  readonly #open: () => Promise<Checkpointer>;
  readonly #remove: () => Promise<void>;

  constructor(checkpointer: Checkpointer, open: () => Promise<Checkpointer>, remove: () => Promise<void>) {
    this.checkpointer = checkpointer;
    this.#open = open;
    this.#remove = remove;
  }

  async reopen(): Promise<void> {
    await this.checkpointer.close();
    this.checkpointer = await this.#open();
  }

  async dispose(): Promise<void> {
    await this.checkpointer.close();
    await this.#remove();
  }
}

export const memory: Engine = {
  name: "memory",
  nature: PLAIN,
  async make() {
    const checkpointer = new MemoryCheckpointer();
    return { checkpointer, reopen: async () => undefined, dispose: () => checkpointer.close() };
  },
};

/** @param open opens a store in a directory of its own */
function inDirectory(name: string, open: (directory: string) => Promise<Checkpointer>): Engine {
  return {
    name,
    nature: PLAIN,
    async make() {
      const directory = fastDir();
      const openHere = () => open(directory);
      return new Store(await openHere(), openHere, async () => rmSync(directory, { recursive: true }));
    },
  };
}

export const sqlite: Engine = inDirectory("sqlite", (directory) =>
  SqliteCheckpointer.open(join(directory, "threads.db")),
);

export const json: Engine = inDirectory("json", (directory) => {
  mkdirSync(join(directory, "state"), { recursive: true });
  return JsonCheckpointer.open({ state: join(directory, "state", "state.json"), memory: join(directory, "memory") });
});

/** An engine on a server, whose one database is emptied after each sequence. @param empty removes all rows */
function onServer(
  name: string,
  nature: Nature,
  open: () => Promise<Checkpointer>,
  empty: () => Promise<unknown>,
): Engine {
  return {
    name,
    nature,
    async make() {
      return new Store(await open(), open, async () => void (await empty()));
    },
  };
}

export const postgres = (url: string, empty: () => Promise<unknown>): Engine =>
  onServer(
    "postgres",
    { ...SERVER, wholeSeconds: false, shortQuestionRuns: false },
    () => PostgresCheckpointer.open(url),
    empty,
  );
export const mysql = (url: string, empty: () => Promise<unknown>): Engine =>
  onServer(
    "mysql",
    { ...SERVER, wholeSeconds: true, shortQuestionRuns: true },
    () => MySQLCheckpointer.open(url),
    empty,
  );
