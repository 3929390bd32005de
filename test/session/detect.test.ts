/** Which store a session has: by what is there and by the setting, and nothing is touched in finding out. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { checkSessionConfig, type PersistenceOptions, type StoredSessionConfig } from "../../src/session/config.ts";
import { checkRestore, detectStore, requireStore } from "../../src/session/detect.ts";
import { makeDirectory, storePath } from "../../src/session/paths.ts";
import { tempDir } from "../support/temp.ts";

/** A session directory with these files in it, each of a few bytes. */
function session(files: readonly string[], options: PersistenceOptions = {}): StoredSessionConfig {
  const directory = tempDir();
  for (const file of files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    writeFileSync(join(directory, file), `content of ${file}`);
  }
  return checkSessionConfig({ directory, ...options }) as StoredSessionConfig;
}

/** Every path below a directory with its content, to compare. */
function everything(directory: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    found[path] = entry.isFile() ? readFileSync(path, "utf8") : "";
  }
  return found;
}

const SQLITE = "state/state.sqlite3";
const JSON_FILE = "state/state.json";

describe("detection", () => {
  test.each([
    ["nothing", [], undefined, "sqlite", false],
    ["nothing", [], "sqlite", "sqlite", false],
    ["nothing", [], "json", "json", false],
    ["SQLite", [SQLITE], undefined, "sqlite", true],
    ["SQLite", [SQLITE], "sqlite", "sqlite", true],
    ["SQLite in WAL", [SQLITE, `${SQLITE}-wal`, `${SQLITE}-shm`], undefined, "sqlite", true],
    ["JSON", [JSON_FILE], undefined, "json", true],
    ["JSON", [JSON_FILE, "memory/a1/state.json"], "json", "json", true],
    [
      "SQLite, with archives of a JSON session that was copied",
      [SQLITE, "memory/a1/state.json"],
      undefined,
      "sqlite",
      true,
    ],
    [
      "files that are no store",
      ["owner.lock", "events.jsonl", "state/.everthread-1.tmp", "memory/notes.txt"],
      undefined,
      "sqlite",
      false,
    ],
    ["a lone -shm, which holds nothing", [`${SQLITE}-shm`], undefined, "sqlite", false],
  ] as const)("%s (%j) under backend: %s is %s", async (_what, files, backend, expected, exists) => {
    const config = session(files, { backend });
    const before = everything(config.directory);
    const found = await detectStore(config);
    expect(found).toEqual({ backend: expected, path: storePath(config, expected), exists });
    expect(everything(config.directory)).toEqual(before);
  });

  test.each([undefined, "sqlite", "json"] as const)(
    "both stores are refused under backend: %s, naming both files",
    async (backend) => {
      const config = session([SQLITE, JSON_FILE], { backend });
      const before = everything(config.directory);
      const error = await detectStore(config).catch((thrown) => thrown);
      expect(error).toMatchObject({
        code: "session_ambiguous",
        sqlite: storePath(config, "sqlite"),
        json: storePath(config, "json"),
      });
      expect(error.message).toContain(join(config.directory, SQLITE));
      expect(error.message).toContain(join(config.directory, JSON_FILE));
      expect(everything(config.directory)).toEqual(before);
    },
  );

  test.each([
    ["json", SQLITE],
    ["sqlite", JSON_FILE],
  ] as const)("backend: %s over a sole %s is refused", async (backend, file) => {
    const config = session([file], { backend });
    await expect(detectStore(config)).rejects.toMatchObject({
      code: "session_backend_mismatch",
      wanted: backend,
      path: join(config.directory, file),
    });
  });

  test("an empty file counts as a store: an engine may have been killed just after creating it", async () => {
    const config = session([JSON_FILE]);
    writeFileSync(storePath(config, "sqlite"), "");
    await expect(detectStore(config)).rejects.toMatchObject({ code: "session_ambiguous" });
  });

  test.each([
    [`${SQLITE}-wal`, [`${SQLITE}-wal`], undefined],
    [`${SQLITE}-journal`, [`${SQLITE}-journal`], "sqlite"],
    [`${SQLITE}-wal`, [`${SQLITE}-wal`, JSON_FILE], "json"],
    ["memory/a1", ["memory/a1/state.json"], undefined],
    ["memory/a1", ["memory/a1/state.json"], "json"],
  ] as const)("%s without its store is refused (%j, backend: %s), and stays as it is", async (left, files, backend) => {
    const config = session(files, { backend });
    const before = everything(config.directory);
    await expect(detectStore(config)).rejects.toMatchObject({
      code: "session_leftover",
      path: join(config.directory, left),
    });
    expect(everything(config.directory)).toEqual(before);
  });

  test("X4 other directories for state and memory are used exactly, with spaces and signs in their names", async () => {
    const config = session(["a #?% dir/state.json", SQLITE], { state: "a #?% dir", memory: "m" });
    expect(await detectStore(config)).toEqual({
      backend: "json",
      path: join(config.directory, "a #?% dir", "state.json"),
      exists: true,
    });
  });

  test("symbolic links are followed, of the directory of the store and of its file", async () => {
    const real = session([JSON_FILE]);
    const config = session([]);
    symlinkSync(real.state, config.state);
    expect(await detectStore(config)).toMatchObject({ backend: "json", exists: true });
    const other = session([]);
    mkdirSync(other.state);
    symlinkSync(storePath(real, "json"), storePath(other, "json"));
    expect(await detectStore(other)).toMatchObject({ backend: "json", exists: true });
  });

  test("X4 what is of the wrong kind is named: a directory or a link to nothing for a store, a file for a directory", async () => {
    const directory = session([]);
    mkdirSync(storePath(directory, "sqlite"), { recursive: true });
    await expect(detectStore(directory)).rejects.toMatchObject({
      code: "session_path",
      path: storePath(directory, "sqlite"),
    });
    const dangling = session([]);
    mkdirSync(dangling.state);
    symlinkSync("nowhere", storePath(dangling, "json"));
    await expect(detectStore(dangling)).rejects.toThrow("is a symbolic link to nothing");
    const loop = session([]);
    symlinkSync("state", loop.state);
    await expect(detectStore(loop)).rejects.toMatchObject({ code: "session_path" });
    const file = session(["state"]);
    await expect(detectStore(file)).rejects.toThrow("is not a directory");
  });

  test("X11 a reader of what is not there gets an error and creates nothing", async () => {
    const parent = tempDir();
    const config = checkSessionConfig({ directory: join(parent, "none") }) as StoredSessionConfig;
    await expect(requireStore(config)).rejects.toMatchObject({ code: "session_not_found" });
    expect(readdirSync(parent)).toEqual([]);
    mkdirSync(config.directory);
    await expect(requireStore(config)).rejects.toThrow("state.sqlite3");
    expect(readdirSync(config.directory)).toEqual([]);
    writeFileSync(join(parent, "file"), "");
    const file = checkSessionConfig({ directory: join(parent, "file") }) as StoredSessionConfig;
    await expect(requireStore(file)).rejects.toThrow("is not a directory");
    await expect(requireStore(session([JSON_FILE]))).resolves.toMatchObject({ backend: "json" });
  });

  test("X6 a writer's directories are made with mode 0700, parents too; what is there is left as it is", async () => {
    const parent = tempDir();
    await makeDirectory(join(parent, "data", "session"));
    for (const name of ["data", "data/session"]) expect(statSync(join(parent, name)).mode & 0o777).toBe(0o700);
    chmodSync(join(parent, "data"), 0o755);
    await makeDirectory(join(parent, "data"));
    expect(statSync(join(parent, "data")).mode & 0o777).toBe(0o755);
    writeFileSync(join(parent, "file"), "");
    await expect(makeDirectory(join(parent, "file"))).rejects.toMatchObject({ code: "session_path" });
    await expect(makeDirectory(join(parent, "file", "below"))).rejects.toMatchObject({ code: "session_path" });
  });

  test("restore: never refuses a store with a conversation, and takes an empty one or none", async () => {
    const config = session([SQLITE], { restore: "never" });
    const found = await detectStore(config);
    expect(() => checkRestore(config, found, false)).toThrow(
      expect.objectContaining({ code: "session_exists", path: found.path }),
    );
    expect(() => checkRestore(config, found, true)).not.toThrow();
    expect(() => checkRestore(config, { ...found, exists: false }, false)).not.toThrow();
    expect(() => checkRestore({ restore: "if_present" }, found, false)).not.toThrow();
  });
});
