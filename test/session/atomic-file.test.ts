/** Files replaced whole: on real files, with faults put between the steps, and on a full file system. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import * as fs from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AtomicFileSystem, FileWriteError, writeFileAtomic } from "../../src/util/atomic-file.ts";
import { tempDir } from "../support/temp.ts";
import { NO_MOUNT, smallFileSystem } from "./support.ts";

const failure = (code: string) => Object.assign(new Error(`${code}: injected`), { code });
const mode = (path: string) => statSync(path).mode & 0o777;

/** The real file system, telling what is done, and failing where `fail` throws. */
function watched(fail: (step: string, at: string) => void = () => {}): { system: AtomicFileSystem; steps: string[] } {
  const steps: string[] = [];
  const step = (name: string, at: string) => {
    steps.push(name);
    fail(name, at);
  };
  const system: AtomicFileSystem = {
    ...fs,
    open: (async (path: string, flags: string, fileMode?: number) => {
      const kind = flags === "r" ? "directory" : "file";
      const handle = await fs.open(path, flags, fileMode);
      return new Proxy(handle, {
        get(target, key) {
          const value = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          return async (...args: unknown[]) => {
            if (key === "writeFile" || key === "sync") step(`${key} ${kind}`, path);
            return await value.apply(target, args);
          };
        },
      });
    }) as typeof fs.open,
    rename: async (from, to) => {
      step("rename", String(to));
      await fs.rename(from, to);
    },
  };
  return { system, steps };
}

describe("writeFileAtomic", () => {
  test("D5 the order is write, fsync of the file, rename, fsync of the directory", async () => {
    const path = join(tempDir(), "state.json");
    const { system, steps } = watched();
    await writeFileAtomic(path, "new", system);
    expect(steps).toEqual(["writeFile file", "sync file", "rename", "sync directory"]);
    expect(readFileSync(path, "utf8")).toBe("new");
  });

  test.each(["EINVAL", "ENOTSUP", "EPERM"])(
    "D5 a directory whose file system refuses fsync by %s is fine",
    async (code) => {
      const path = join(tempDir(), "state.json");
      const { system } = watched((step) => {
        if (step === "sync directory") throw failure(code);
      });
      await writeFileAtomic(path, "new", system);
      expect(readFileSync(path, "utf8")).toBe("new");
    },
  );

  test("D5 an fsync of the directory that really fails is an error, which says that the file was replaced", async () => {
    const path = join(tempDir(), "state.json");
    writeFileSync(path, "old");
    const { system } = watched((step) => {
      if (step === "sync directory") throw failure("EIO");
    });
    const error = await writeFileAtomic(path, "new", system).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(FileWriteError);
    expect(error).toMatchObject({ code: "file_write_failed", path, replaced: true });
    expect(readFileSync(path, "utf8")).toBe("new");
  });

  test.each(["writeFile file", "sync file", "rename"])(
    "a failure at '%s' leaves the old file and no temporary one",
    async (at) => {
      const dir = tempDir();
      const path = join(dir, "state.json");
      writeFileSync(path, "old");
      const { system } = watched((step) => {
        if (step === at) throw failure("EIO");
      });
      await expect(writeFileAtomic(path, "new", system)).rejects.toMatchObject({
        code: "file_write_failed",
        replaced: false,
      });
      expect(readdirSync(dir)).toEqual(["state.json"]);
      expect(readFileSync(path, "utf8")).toBe("old");
    },
  );

  test("D7 leftovers and planted names are passed over: a file, a directory, a symbolic link; the temporary name is new each time", async () => {
    const dir = tempDir();
    const path = join(dir, "x.json");
    const victim = join(dir, "victim");
    writeFileSync(victim, "victim");
    writeFileSync(join(dir, "x.json.tmp"), "leftover");
    mkdirSync(join(dir, ".x.json.tmp"));
    symlinkSync(victim, join(dir, "x.json.tmp~"));
    const names = new Set<string>();
    for (let i = 0; i < 3; i++) {
      await writeFileAtomic(path, `${i}`, {
        ...fs,
        rename: async (from, to) => {
          names.add(basename(String(from)));
          expect(lstatSync(from).isFile()).toBe(true);
          expect(mode(String(from))).toBe(0o600);
          await fs.rename(from, to);
        },
      });
    }
    expect(names.size).toBe(3);
    expect(readFileSync(path, "utf8")).toBe("2");
    expect(readFileSync(victim, "utf8")).toBe("victim");
    expect(readFileSync(join(dir, "x.json.tmp"), "utf8")).toBe("leftover");
    expect(readdirSync(dir).sort()).toEqual([".x.json.tmp", "victim", "x.json", "x.json.tmp", "x.json.tmp~"]);
  });

  test("D7 a link planted at the very temporary name is not followed", async () => {
    const dir = tempDir();
    const victim = join(dir, "victim");
    writeFileSync(victim, "victim");
    const open = (async (path: string, flags: string, fileMode?: number) => {
      if (flags !== "r") symlinkSync(victim, path);
      return await fs.open(path, flags, fileMode);
    }) as typeof fs.open;
    const error = await writeFileAtomic(join(dir, "x.json"), "new", { ...fs, open }).catch((thrown) => thrown);
    expect(error.cause).toMatchObject({ code: "EEXIST" });
    expect(readFileSync(victim, "utf8")).toBe("victim");
    expect(existsSync(join(dir, "x.json"))).toBe(false);
  });

  test("D7 two writers of one file at a time don't mix, and leave nothing behind", async () => {
    const dir = tempDir();
    const path = join(dir, "x.json");
    const contents = ["a", "b", "c", "d"].map((letter) => letter.repeat(300_000));
    await Promise.all(contents.map((content) => writeFileAtomic(path, content)));
    expect(contents).toContain(readFileSync(path, "utf8"));
    expect(readdirSync(dir)).toEqual(["x.json"]);
  });

  test("symbolic links are followed: of the file and of its directory, with the temporary file beside the real one", async () => {
    const dir = tempDir();
    for (const name of ["real", "other"]) mkdirSync(join(dir, name));
    writeFileSync(join(dir, "real", "state.json"), "old");
    symlinkSync(join("..", "real", "state.json"), join(dir, "other", "state.json"));
    symlinkSync("other", join(dir, "link"));
    const folders: string[] = [];
    const system: AtomicFileSystem = {
      ...fs,
      rename: async (from, to) => {
        folders.push(dirname(String(from)));
        await fs.rename(from, to);
      },
    };
    await writeFileAtomic(join(dir, "link", "state.json"), "new", system);
    await writeFileAtomic(join(dir, "link", "fresh.json"), "fresh", system);
    expect(folders).toEqual(["real", "other"].map((name) => realpathSync(join(dir, name))));
    expect(readlinkSync(join(dir, "other", "state.json"))).toBe(join("..", "real", "state.json"));
    expect(readFileSync(join(dir, "real", "state.json"), "utf8")).toBe("new");
    expect(readFileSync(join(dir, "other", "fresh.json"), "utf8")).toBe("fresh");
  });

  test("what is no file is refused: a directory, a link to nothing, a directory that is missing", async () => {
    const dir = tempDir();
    symlinkSync("nowhere", join(dir, "dangling"));
    await expect(writeFileAtomic(dir, "x")).rejects.toThrow("not a regular file");
    await expect(writeFileAtomic(join(dir, "dangling"), "x")).rejects.toThrow("a symbolic link to nothing");
    await expect(writeFileAtomic(join(dir, "missing", "x"), "x")).rejects.toBeInstanceOf(FileWriteError);
    expect(readdirSync(dir)).toEqual(["dangling"]);
  });

  test("X6 a new file has mode 0600, one that is replaced keeps its mode", async () => {
    const path = join(tempDir(), "state.json");
    await writeFileAtomic(path, "1");
    expect(mode(path)).toBe(0o600);
    for (const kept of [0o644, 0o666, 0o400]) {
      chmodSync(path, kept);
      await writeFileAtomic(path, "2");
      expect(mode(path)).toBe(kept);
    }
  });

  test("root keeps the owner of a file that it replaces", async (context) => {
    if (process.getuid?.() !== 0) return context.skip("only root may give a file to another user");
    const path = join(tempDir(), "state.json");
    writeFileSync(path, "old");
    await fs.chown(path, 65_534, 65_534);
    await writeFileAtomic(path, "new");
    expect(statSync(path)).toMatchObject({ uid: 65_534, gid: 65_534 });
  });

  test.each(["EPERM", "EBUSY", "EACCES"])(
    "X8 a rename that fails by %s three times while a scanner holds the file is tried again",
    async (code) => {
      const path = join(tempDir(), "state.json");
      let tries = 0;
      const { system } = watched((step) => {
        if (step === "rename" && ++tries <= 3) throw failure(code);
      });
      await writeFileAtomic(path, "new", system);
      expect(tries).toBe(4);
      expect(readFileSync(path, "utf8")).toBe("new");
    },
  );

  test("X8 a file that stays held is an error in the end: the old content is intact, and no temporary file is left", async () => {
    const dir = tempDir();
    const path = join(dir, "state.json");
    writeFileSync(path, "old");
    const { system, steps } = watched((step) => {
      if (step === "rename") throw failure("EBUSY");
    });
    const error = await writeFileAtomic(path, "new", system).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(FileWriteError);
    expect(error.message).toContain("What was there is intact");
    expect(steps.filter((step) => step === "rename")).toHaveLength(7);
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(dir)).toEqual(["state.json"]);
  });

  test("a full disk: the old content is intact, no temporary file is left, and the next write that fits works", async (context) => {
    const dir = smallFileSystem("128k");
    if (!dir) return context.skip(NO_MOUNT);
    const path = join(dir, "state.json");
    await writeFileAtomic(path, "old");
    const error = await writeFileAtomic(path, "x".repeat(500_000)).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "file_write_failed", replaced: false, cause: { code: "ENOSPC" } });
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(dir)).toEqual(["state.json"]);
    await writeFileAtomic(path, "new");
    expect(readFileSync(path, "utf8")).toBe("new");
  });
});
