/** One worker owns a session: real processes, really killed. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { Worker } from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionOwnedError, SessionPathError } from "../../src/session/errors.ts";
import { readOwner, SessionOwner } from "../../src/session/owner.ts";
import { startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";
import { makeReadOnly, NO_MOUNT, smallFileSystem } from "./support.ts";

interface Child {
  process: ChildProcess;
  next(): Promise<string>;
}

function child(directory: string, when: "now" | "wait", ...more: string[]): Child {
  const process = startChild(new URL("owner-child.ts", import.meta.url), [directory, when, ...more]);
  onTestFinished(() => void process.kill("SIGKILL"));
  let stderr = "";
  process.stderr?.on("data", (chunk) => {
    stderr += chunk;
  });
  const lines = createInterface({ input: process.stdout as NonNullable<typeof process.stdout> })[
    Symbol.asyncIterator
  ]();
  const next = async () => {
    const { value, done } = await (lines as ReturnType<Interface[typeof Symbol.asyncIterator]>).next();
    if (done) throw new Error(`The child ended: ${stderr}`);
    return value;
  };
  return { process, next };
}

async function owning(directory: string, ...more: string[]): Promise<Child> {
  const owner = child(directory, "now", ...more);
  expect(await owner.next()).toBe("ready");
  return owner;
}

async function kill(owner: Child): Promise<void> {
  const gone = once(owner.process, "exit");
  owner.process.kill("SIGKILL");
  await gone;
}

const refusal = (directory: string) =>
  SessionOwner.acquire(directory).then(
    () => undefined,
    (error: unknown) => error,
  );

describe("ownership", () => {
  test("C9 a second worker is refused with the owner's pid, host and time; a killed owner's session is free at once", async () => {
    const dir = tempDir();
    const owner = await owning(dir);
    expect(await owner.next()).toBe("owned");
    const error = await refusal(dir);
    expect(error).toBeInstanceOf(SessionOwnedError);
    expect(error).toMatchObject({ code: "session_owned", pid: owner.process.pid, host: hostname(), directory: dir });
    expect((error as SessionOwnedError).since?.getTime()).toBeGreaterThan(Date.now() - 60_000);
    expect((error as Error).message).toContain(`process ${owner.process.pid} on ${hostname()}`);
    await kill(owner);
    const start = performance.now();
    await using mine = await SessionOwner.acquire(dir);
    expect(performance.now() - start).toBeLessThan(1000);
    expect(await readOwner(mine.directory)).toMatchObject({ pid: process.pid });
  });

  test("C9 of ten workers at once exactly one wins, and each other learns who; again after the winner is killed", async () => {
    const dir = tempDir();
    for (let round = 0; round < 2; round++) {
      const racers = Array.from({ length: 10 }, () => child(dir, "wait"));
      for (const racer of racers) expect(await racer.next()).toBe("ready");
      for (const racer of racers) racer.process.stdin?.write("go\n");
      const said = await Promise.all(racers.map((racer) => racer.next()));
      expect(said.filter((line) => line === "owned")).toHaveLength(1);
      const winner = racers[said.indexOf("owned")] as Child;
      for (const line of said.filter((text) => text !== "owned")) {
        // In the second round the record of the first winner is still there; nobody takes it for the owner.
        expect(JSON.parse(line)).toMatchObject({ code: "session_owned", pid: winner.process.pid });
      }
      await kill(winner);
    }
    expect(readdirSync(dir).sort()).toEqual(["owner.json", "owner.lock"]);
  }, 60_000);

  test("this process itself is refused a second time, in a thread too, and can have it again after release", async () => {
    const dir = tempDir();
    const first = await SessionOwner.acquire(dir);
    expect(await refusal(dir)).toMatchObject({ code: "session_owned", pid: process.pid });
    const link = join(tempDir(), "link");
    symlinkSync(dir, link);
    expect(await refusal(link)).toMatchObject({ code: "session_owned", pid: process.pid });
    const inThread = `
      const { DatabaseSync } = require("node:sqlite");
      try { new DatabaseSync(${JSON.stringify(join(dir, "owner.lock"))}).exec("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE"); }
      catch (error) { require("node:worker_threads").parentPort.postMessage(error.errcode); }`;
    const [code] = await once(new Worker(inThread, { eval: true }), "message");
    expect(code).toBe(5);
    // The refusals above must not have cost this process its own lock.
    const other = await owning(dir);
    expect(JSON.parse(await other.next())).toMatchObject({ code: "session_owned", pid: process.pid });
    await first.release();
    await first.release();
    await using second = await SessionOwner.acquire(dir);
    expect(second.directory).toBe(dir);
  });

  test("a child of the owner does not hold the session after the owner was killed", async () => {
    const dir = tempDir();
    const owner = await owning(dir, "spawn");
    const grandchild = Number(await owner.next());
    onTestFinished(() => void process.kill(grandchild, "SIGKILL"));
    expect(await owner.next()).toBe("owned");
    await kill(owner);
    expect(process.kill(grandchild, 0)).toBe(true);
    await using mine = await SessionOwner.acquire(dir);
    expect(mine.directory).toBe(dir);
  });

  test("release leaves no record, and keeps owner.lock, whose removal could let two own the session", async () => {
    const dir = tempDir();
    const owner = await owning(dir);
    expect(await owner.next()).toBe("owned");
    owner.process.stdin?.end();
    expect(await owner.next()).toBe("released");
    expect(readdirSync(dir)).toEqual(["owner.lock"]);
    expect(statSync(join(dir, "owner.lock")).size).toBe(0);
  });

  test("owner.json decides nothing: a reused pid, nonsense, a directory in its place", async () => {
    const dir = tempDir();
    const record = { pid: process.pid, host: hostname(), started_at: new Date().toISOString() };
    for (const text of [
      JSON.stringify(record),
      "{",
      "\0",
      '{"pid":-1}',
      '{"pid":1e99,"host":"x","started_at":"y"}',
      "null",
    ]) {
      writeFileSync(join(dir, "owner.json"), text);
      const owner = await SessionOwner.acquire(dir);
      expect(await readOwner(dir)).toMatchObject({ pid: process.pid });
      await owner.release();
    }
    mkdirSync(join(dir, "owner.json"));
    const error = await refusal(dir);
    expect(error).toBeInstanceOf(SessionPathError);
    expect((error as Error).message).toContain("not a regular file");
    // The lock was given back.
    expect(await refusal(dir)).toBeInstanceOf(SessionPathError);
  });

  test("with no readable record the loser says that it does not know who, and its event loop was free meanwhile", async () => {
    const dir = tempDir();
    const owner = await owning(dir);
    expect(await owner.next()).toBe("owned");
    writeFileSync(join(dir, "owner.json"), "cut {");
    let ticks = 0;
    const timer = setInterval(() => ticks++, 10);
    const error = await refusal(dir);
    clearInterval(timer);
    expect(error).toMatchObject({ code: "session_owned", pid: undefined });
    expect((error as Error).message).toContain("another process, which has not said which");
    expect(ticks).toBeGreaterThan(20);
  });

  test("X6 its files are of mode 0600 whatever the umask", async () => {
    const dir = tempDir();
    await using owner = await SessionOwner.acquire(dir);
    for (const name of readdirSync(owner.directory))
      expect([name, statSync(join(dir, name)).mode & 0o777]).toEqual([name, 0o600]);
    expect(readdirSync(dir).sort()).toEqual(["owner.json", "owner.lock"]);
  });

  test("a foreign file or a link at owner.lock is refused and not touched", async () => {
    const dir = tempDir();
    const lock = join(dir, "owner.lock");
    writeFileSync(lock, "important");
    expect(await refusal(dir)).toMatchObject({ code: "session_path", path: lock });
    expect(readFileSync(lock, "utf8")).toBe("important");
    const linked = tempDir();
    symlinkSync(join(dir, "elsewhere"), join(linked, "owner.lock"));
    expect(await refusal(linked)).toMatchObject({ code: "session_path" });
    expect(readdirSync(dir)).toEqual(["owner.lock"]);
  });

  test("X12 a directory that is missing or read-only is an error that says so", async (context) => {
    expect(await refusal(join(tempDir(), "missing"))).toMatchObject({ code: "session_path" });
    const dir = smallFileSystem("1m");
    if (!dir) return context.skip(NO_MOUNT);
    await (await SessionOwner.acquire(dir)).release();
    makeReadOnly(dir);
    const error = await refusal(dir);
    expect(error).toMatchObject({ code: "session_path" });
    expect((error as Error).message).toContain("needs to write the directory");
  });
});
