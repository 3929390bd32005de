/** Paths, names, modes, links and full disks: what the files of a JSON store are, and what happens where they can't be written. */
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { isArchiveName, nameArchive } from "../../src/checkpoint/json/names.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { code, filesIn, logOf, makeStore, mode, open, read, says, textsOf } from "./support.ts";

const isRoot = process.getuid?.() === 0;

describe("a path that can't be a store is refused, and nothing is made elsewhere", () => {
  test("X4 a directory that is not there, a directory, a link to nothing, no path, an unknown option", async () => {
    const dir = tempDir();
    const memory = join(dir, "memory");
    const refused = (state: string) => expect(JsonCheckpointer.open({ state, memory })).rejects;
    await refused(join(dir, "missing", "state.json")).toThrow(/no directory .*missing\. Create it/);
    await refused(dir).toThrow(/not a regular file/);
    fs.symlinkSync(join(dir, "nowhere"), join(dir, "link"));
    await refused(join(dir, "link")).toThrow(/link to nothing/);
    await refused("").toThrow(/state must be a path/);
    const misspelt = { state: join(dir, "state.json"), memory, readonly: true };
    await expect(JsonCheckpointer.open(misspelt)).rejects.toThrow(/no option readonly.*readOnly/);
    expect(fs.readdirSync(dir)).toEqual(["link"]);
  });

  test("X4 a file: URL and a path with odd characters are taken as they are", async () => {
    const files = filesIn();
    const state = join(files.dir, "a #%20?.json");
    await using store = await JsonCheckpointer.open({ state: pathToFileURL(state), memory: files.memory });
    expect(store.path).toBe(state);
    expect(fs.readdirSync(files.dir)).toEqual(["a #%20?.json"]);
  });

  test("X11 reading creates nothing and changes nothing", async () => {
    const files = filesIn();
    await expect(open(files, { readOnly: true })).rejects.toThrow(/no file .* reading creates none/);
    expect(fs.readdirSync(files.dir)).toEqual([]);
    await makeStore(files, ["one"]);
    const before = [read(files.state), fs.statSync(files.state).mtimeMs];
    await using reader = await open(files, { readOnly: true });
    expect(await textsOf(reader)).toEqual(["one"]);
    await expect(reader.append("session", says("two"))).rejects.toEqual(code("store_read_only"));
    await expect(reader.archives.compact("session", { upTo: 1, summary: "s" })).rejects.toEqual(
      code("store_read_only"),
    );
    expect([read(files.state), fs.statSync(files.state).mtimeMs]).toEqual(before);
    expect(fs.readdirSync(files.dir)).toEqual(["state.json"]);
  });

  test("X5 in a read-only directory a store is read, and not opened to be written", async ({ skip }) => {
    const files = filesIn();
    await makeStore(files, ["one"]);
    if (isRoot) {
      mount(files.dir, skip, ["--bind", files.dir, files.dir], ["-o", "remount,ro,bind", files.dir]);
    } else fs.chmodSync(files.dir, 0o500);
    await expect(open(files)).rejects.toThrow(/may not be written .* readOnly/);
    await using reader = await open(files, { readOnly: true });
    expect(await textsOf(reader)).toEqual(["one"]);
    if (!isRoot) fs.chmodSync(files.dir, 0o700);
  });

  test("X10 a file that this user may not read is refused by name", async ({ skip }) => {
    const files = filesIn();
    await makeStore(files, ["one"]);
    fs.chmodSync(files.state, 0);
    if (isRoot) skip("root may read everything");
    await expect(open(files)).rejects.toThrow(`${files.state} may not be read by this user`);
    expect(mode(files.state)).toBe("0");
  });
});

test("X6 files are 0600 and directories 0700, whatever the umask; an existing file keeps its mode", async () => {
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("1", "2"));
  await store.archives.compact("session", { upTo: 1, summary: "s" });
  await store.backup(join(files.dir, "copy"));
  for (const dir of [
    files.memory,
    join(files.memory, "a1"),
    ...["", "state", "memory"].map((d) => join(files.dir, "copy", d)),
  ]) {
    expect(mode(dir), dir).toBe("700");
  }
  for (const file of ["state.json", "memory/a1/state.json", "copy/state/state.json", "copy/memory/a1/state.json"]) {
    expect(mode(join(files.dir, file)), file).toBe("600");
  }
  fs.chmodSync(files.state, 0o640);
  await store.append("session", says("3"));
  expect(mode(files.state)).toBe("640");
});

describe("names of archives", () => {
  const own = (threadId: string) => nameArchive(threadId, "a1", "session", () => false);

  test("X1 X2 no id leads elsewhere, and no two share a name, whatever the case of letters", () => {
    const ids = ["../evil", "..\\evil", "/etc/x", ".", "..", "a/b", "x".repeat(255), "😀".repeat(255), "end.", "end "];
    ids.push("CON", "con", "Con", "nul", "agent:main:uuid", "a\u0001b", "é", "e\u0301", "É", "a", "A", "a1", "a=41");
    ids.push("a~2", "=41", "Session", "sess ion", "%2e%2e", "~", "-rf", `${"x".repeat(254)}y`);
    const names = ids.map(own);
    for (const name of names) {
      expect(name).toMatch(/^a1\.[a-z0-9_=~-]{1,200}$/);
      expect(isArchiveName(name), name).toBe(true);
    }
    expect(new Set(names).size).toBe(ids.length);
    expect(own("session")).toBe("a1");
    expect(own("Agent:7")).toBe("a1.=41gent=3a7");
  });

  test("a name that is in use is not taken again", () => {
    const taken = new Set(["a1.x", "a1.x~2"]);
    const name = nameArchive("x", "a1", "session", (one) => taken.has(one));
    expect(name).toBe("a1.x~3");
    expect(isArchiveName(name)).toBe(true);
  });

  test.each(["", ".", "..", "a1/..", "../a1", "a1.", "a01", "a1.A", "/a1", "a1.x/y", "a1\n", "a1.~x", "b1"])(
    "%j is no name of an archive",
    (name) => {
      expect(isArchiveName(name)).toBe(false);
    },
  );

  test("X1 X2 threads of odd names are compacted, read, forked and deleted, and their archives go with them", async () => {
    const files = filesIn();
    const ids = ["../evil", "CON", "con", "a/b", "x".repeat(255), "agent:main", "end. ", "session", "é"];
    await using store = await open(files);
    for (const id of ids) {
      await store.append(id, says(`one of ${id}`, "two"));
      const [first] = (await store.listMessages(id)).items;
      await store.archives.compact(id, { upTo: first?.position ?? 0, summary: "s" });
    }
    expect(fs.readdirSync(files.dir).sort()).toEqual(["memory", "state.json"]);
    expect(fs.readdirSync(files.memory)).toHaveLength(ids.length);
    for (const id of ids) {
      expect(await logOf(store, id)).toEqual([`one of ${id}`, "two"]);
      expect(await store.deleteThread(id)).toBe(true);
    }
    expect(fs.readdirSync(files.memory)).toEqual([]);
    expect(JSON.parse(read(files.state))).toMatchObject({ threads: {} });
  });
});

describe("what stands beside the files", () => {
  test("D7 leftovers and planted files of names that were once in use are neither read nor written", async () => {
    const files = filesIn();
    const outside = join(files.dir, "outside");
    fs.writeFileSync(outside, "mine");
    for (const name of ["state.json.tmp", "state.json.bak", ".state.json.tmp", "state.json~"]) {
      fs.symlinkSync(outside, join(files.dir, name));
    }
    fs.mkdirSync(join(files.dir, "state.json.lock"));
    fs.writeFileSync(join(files.dir, ".everthread-0123.tmp"), "half a snap");
    await makeStore(files, ["one"]);
    await using store = await open(files);
    expect(await textsOf(store)).toEqual(["one"]);
    expect(read(outside)).toBe("mine");
    expect(fs.lstatSync(files.state).isSymbolicLink()).toBe(false);
  });

  test("D7 a symbolic link to the file is followed: the file that it leads to is replaced", async () => {
    const files = filesIn();
    const elsewhere = join(files.dir, "elsewhere");
    fs.mkdirSync(elsewhere);
    await makeStore(filesIn(elsewhere), ["one"]);
    fs.symlinkSync(join(elsewhere, "state.json"), files.state);
    await using store = await open(files);
    await store.append("session", says("two"));
    expect(fs.lstatSync(files.state).isSymbolicLink()).toBe(true);
    await using other = await open(filesIn(elsewhere));
    expect(await textsOf(other)).toEqual(["one", "two"]);
    expect(fs.readdirSync(elsewhere)).toEqual(["state.json"]);
  });

  test("an archive's directory that a compaction left behind is taken over, and foreign files in one stay", async () => {
    const files = filesIn();
    fs.mkdirSync(join(files.memory, "a1"), { recursive: true });
    fs.writeFileSync(join(files.memory, "a1", "state.json"), '{"half": "an arch');
    fs.writeFileSync(join(files.memory, "a1", "notes.txt"), "mine");
    await using store = await open(files);
    await store.append("session", says("1", "2", "3"));
    await store.archives.compact("session", { upTo: 1, summary: "s" });
    await store.archives.compact("session", { upTo: 2, summary: "t" });
    expect(await logOf(store)).toEqual(["1", "2", "3"]);
    await store.archives.prune("session", { keep: 1 });
    expect(fs.readdirSync(join(files.memory, "a1"))).toEqual(["notes.txt"]);
    expect(await logOf(store)).toEqual(["2", "3"]);
  });
});

test("archives that could not be removed are removed by a later write", async () => {
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("1", "2", "3"));
  for (const upTo of [1, 2]) await store.archives.compact("session", { upTo, summary: "s" });
  const file = join(files.memory, "a1", "state.json");
  fs.renameSync(file, join(files.dir, "kept"));
  // A directory in its place is no file to be removed.
  fs.mkdirSync(file);
  expect((await store.archives.prune("session", { keep: 1 })).pruned).toEqual(["a1"]);
  expect(JSON.parse(read(files.state)).removed).toEqual(["a1"]);
  fs.rmdirSync(file);
  fs.renameSync(join(files.dir, "kept"), file);
  await using again = await open(files);
  await again.append("session", says("4"));
  expect(fs.readdirSync(files.memory)).toEqual(["a2"]);
  await again.append("session", says("5"));
  expect(JSON.parse(read(files.state)).removed).toEqual([]);
});

test("archives of another store take new directories: what the snapshot refers to is not overwritten", async () => {
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("1", "2"));
  await store.archives.compact("session", { upTo: 1, summary: "s" });
  const { archives } = JSON.parse(read(files.state)).threads.session;
  expect(archives[0].directory).toBe("a1");
  const [info] = (await store.archives.list("session")).items;
  const part = { archiveId: "a1", createdAt: new Date(0), messageCount: 2, summary: "both", system: null, extra: {} };
  await store.importThread("session", { archives: [{ ...part, prunedAt: null }] });
  expect(info?.summary).toBe("s");
  expect(fs.readdirSync(files.memory)).toEqual(["a1~2"]);
  expect(await store.load("session")).toMatchObject({ summary: "both", messages: [] });
  expect(await logOf(store)).toEqual(["1", "2"]);
});

test("a backup is laid out as a session's directory, and a directory that is there is left alone", async () => {
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("1", "2"));
  await store.archives.compact("session", { upTo: 1, summary: "s" });
  const copy = join(files.dir, "copy");
  await store.backup(copy);
  await expect(store.backup(copy)).rejects.toEqual(code("store_open_failed"));
  await using copied = await JsonCheckpointer.open({
    state: join(copy, "state/state.json"),
    memory: join(copy, "memory"),
  });
  expect(await logOf(copied)).toEqual(["1", "2"]);
});

/** Mounts, and unmounts when the test is over; a machine that mounts nothing skips the test. */
function mount(dir: string, skip: (reason: string) => never, ...calls: string[][]): void {
  try {
    for (const args of calls) execFileSync("mount", args, { stdio: "pipe" });
  } catch (error) {
    skip(`nothing can be mounted here: ${String((error as Error).message).split("\n")[0]}`);
  }
  onTestFinished(() => void execFileSync("umount", ["-l", dir]));
}

test("a full disk: whatever step it hits, the operation fails as a whole, the old file stays, and room brings it back", async ({
  skip,
}) => {
  const dir = tempDir();
  mount(dir, skip, ["-t", "tmpfs", "-o", "size=256k", "tmpfs", dir]);
  const files = filesIn(dir);
  const large = "x".repeat(20_000);
  await using store = await open(files);
  await store.append("session", says("1", large, "3"));
  const filler = join(dir, "filler");
  const free = () => Number(fs.statfsSync(dir).bfree) * Number(fs.statfsSync(dir).bsize);
  // From no room at all to enough: each run out of it somewhere else.
  const outcomes = new Set<string>();
  for (let room = 0; room <= 64 * 1024; room += 4096) {
    fs.writeFileSync(filler, "");
    fs.writeFileSync(filler, Buffer.alloc(free() - room));
    const before = read(files.state);
    const log = await logOf(store);
    const outcome = await store.archives.compact("session", { upTo: 2, summary: "s" }).then(
      () => "done",
      (error: { code: string }) => error.code,
    );
    outcomes.add(outcome);
    if (outcome === "done") break;
    expect(outcome).toBe("store_error");
    expect(read(files.state)).toBe(before);
    expect(await logOf(store)).toEqual(log);
    await expect(store.append("session", says("y".repeat(90_000)))).rejects.toEqual(code("store_error"));
    expect(read(files.state)).toBe(before);
    expect(fs.readdirSync(dir).filter((name) => name.startsWith("."))).toEqual([]);
  }
  expect(outcomes).toEqual(new Set(["store_error", "done"]));
  fs.rmSync(filler);
  await store.append("session", says("4"));
  await using again = await open(files);
  expect(await logOf(again)).toEqual(["1", large, "3", "4"]);
  expect(await again.checkIntegrity()).toEqual([]);
});

test("X12 L16 what can't be written leaves memory as it was too", async () => {
  const files = filesIn();
  await using store = await open(files);
  await store.append("session", says("1"));
  fs.writeFileSync(files.memory, "not a directory");
  await expect(store.archives.compact("session", { upTo: 1, summary: "s" })).rejects.toEqual(code("store_error"));
  expect(await store.load("session")).not.toHaveProperty("summary");
  fs.rmSync(files.memory);
  await store.archives.compact("session", { upTo: 1, summary: "s" });
  expect(await store.load("session")).toMatchObject({ summary: "s" });
});

test("D9 a store that is opened and killed at once is there", async () => {
  const files = filesIn();
  const child = startChild(new URL("./writer.ts", import.meta.url), [files.state, files.memory, "none", "0"]);
  await ended(child);
  await using store = await open(files, { readOnly: true });
  expect((await store.listThreads()).items).toEqual([]);
});
