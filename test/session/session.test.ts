/** Sessions whole: an agent in a directory, closed and opened again, owned by one, read from outside. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { OfflineModel } from "../../src/model/offline.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { networkFileSystem } from "../../src/session/file-system.ts";
import { openSession, type PersistenceOptions, readState, type Session } from "../../src/session/index.ts";
import { ended, startChild } from "../support/child.ts";
import { tempDir } from "../support/temp.ts";

const WORKER = new URL("./worker.ts", import.meta.url);
const BACKENDS = ["sqlite", "json"] as const;

const directoryFor = (backend: (typeof BACKENDS)[number], more: Omit<PersistenceOptions, "directory"> = {}) => ({
  directory: join(tempDir(), "session"),
  backend,
  ...more,
});
const agentOf = (session: Session) => new Agent({ model: new OfflineModel(), ...session.agentOptions() });

/** Every file below a directory, with its mode and its bytes. */
function filesBelow(directory: string): [string, string, string][] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path.slice(directory.length), statSync(path).mode.toString(8), readFileSync(path, "latin1")]);
}

describe.each(BACKENDS)("a session in %s", (backend) => {
  test("holds one conversation, which goes on when it is opened again, without naming the backend", async () => {
    const options = directoryFor(backend);
    await using first = await openSession(options);
    await agentOf(first).prompt("Remember: my favourite colour is teal.");
    await first.close();
    const { backend: _, ...unnamed } = options;
    await using second = await openSession(unnamed);
    expect(second.backend).toBe(backend);
    expect((await agentOf(second).prompt("What did I say my favourite colour was?")).text).toContain("teal");
    expect(existsSync(join(options.directory, "state", backend === "json" ? "state.json" : "state.sqlite3"))).toBe(
      true,
    );
  });

  test("C9 has one owner: a second is refused with its pid, and after kill -9 of the owner the next one takes over", async () => {
    const options = directoryFor(backend);
    const worker = startChild(WORKER, [JSON.stringify(options), "hold"]);
    const line = await new Promise<string>((resolve) => worker.stdout?.once("data", (data) => resolve(String(data))));
    expect(line).toContain("held");
    await expect(openSession(options)).rejects.toMatchObject({ code: "session_owned", pid: worker.pid });
    // It can be read all the same.
    expect((await readState(options.directory)).messages).toHaveLength(2);
    worker.kill("SIGKILL");
    await ended(worker);
    await using session = await openSession(options);
    expect((await session.checkpointer.load(session.threadId))?.messages).toHaveLength(2);
  });

  test("restore: never opens an empty directory and refuses a conversation, which stays", async () => {
    const options = directoryFor(backend, { restore: "never" });
    await using first = await openSession(options);
    await agentOf(first).prompt("Hello");
    await first.close();
    const before = filesBelow(join(options.directory, "state"));
    await expect(openSession(options)).rejects.toMatchObject({ code: "session_exists" });
    expect(filesBelow(join(options.directory, "state"))).toEqual(before);
    // The refusal gave the ownership back.
    await using again = await openSession({ ...options, restore: "if_present" });
    expect((await again.checkpointer.load(again.threadId))?.messages).toHaveLength(2);
  });

  test("X11 readState gives the same as the worker has, changes nothing and creates nothing", async () => {
    const options = directoryFor(backend);
    await expect(readState(options.directory)).rejects.toMatchObject({ code: "session_not_found" });
    expect(existsSync(options.directory)).toBe(false);
    await using session = await openSession(options);
    const agent = agentOf(session);
    await agent.prompt("Remember: my favourite colour is teal.");
    await session.checkpointer.saveExtra(session.threadId, { plan: [1, null, "\0"] });
    const open = await readState(options.directory);
    expect(open).toMatchObject({ format: 1, thread_id: "session", state: "complete", summary: null, archives: [] });
    expect(open.messages).toHaveLength(2);
    expect(open.extra).toEqual({ plan: [1, null, "\0"] });
    await session.close();
    const before = filesBelow(options.directory);
    expect(await readState(options.directory)).toEqual(open);
    expect(filesBelow(options.directory)).toEqual(before);
  });

  test("X5 readState reads a directory that may not be written", async ({ skip }) => {
    if (process.getuid?.() === 0) skip("root may write everything");
    const options = directoryFor(backend);
    await using session = await openSession(options);
    await agentOf(session).prompt("Hello");
    await session.close();
    chmodSync(join(options.directory, "state"), 0o500);
    expect((await readState(options.directory)).messages).toHaveLength(2);
    chmodSync(join(options.directory, "state"), 0o700);
  });

  test("a crash while a tool runs leaves the evidence of what was running, and the next prompt goes on", async () => {
    const options = directoryFor(backend);
    const worker = startChild(WORKER, [JSON.stringify(options), "tool"]);
    await new Promise((resolve) => worker.stdout?.once("data", resolve));
    worker.kill("SIGKILL");
    await ended(worker);
    const left = await readState(options.directory);
    expect(left.state).toBe("awaiting_results");
    expect(left.messages.at(-1)).toMatchObject({ content: [{ type: "tool_call", name: "slow" }] });
    await using session = await openSession(options);
    const model = new ScriptedModel(["I see."]);
    const result = await new Agent({ model, ...session.agentOptions() }).prompt("Go on");
    expect(result.status).toBe("completed");
    expect((await readState(options.directory)).state).toBe("complete");
  });

  test("X6 everything in it is for its owner only, whatever the umask", async () => {
    const before = process.umask(0o022);
    try {
      const options = directoryFor(backend, { events: true, readable: true });
      await using session = await openSession(options);
      await agentOf(session).prompt("Hello");
      await session.close();
      for (const [path, mode] of filesBelow(options.directory)) expect([path, mode]).toEqual([path, "100600"]);
      expect(statSync(options.directory).mode & 0o777).toBe(0o700);
      expect(statSync(join(options.directory, "state")).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  test("events.jsonl has every event, one a line, and readable.md the conversation; neither restores anything", async () => {
    const options = directoryFor(backend, { events: true, readable: true });
    await using session = await openSession(options);
    const seen: string[] = [];
    await agentOf(session).prompt("Hello", { onEvent: ({ type }) => seen.push(type) });
    await session.close();
    const lines = readFileSync(join(options.directory, "events.jsonl"), "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).type)).toEqual(seen);
    expect(readFileSync(join(options.directory, "readable.md"), "utf8")).toContain("Hello");
  });

  test("a failing export is reported once, and the conversation goes on", async () => {
    const options = directoryFor(backend, { events: true, readable: true });
    mkdirSync(join(options.directory, "events.jsonl"), { recursive: true });
    mkdirSync(join(options.directory, "readable.md"));
    const problems: Error[] = [];
    await using session = await openSession(options, { onProblem: (error) => problems.push(error) });
    const agent = agentOf(session);
    for (const text of ["one", "two"]) expect((await agent.prompt(text)).status).toBe("completed");
    await session.close();
    expect(problems.map(({ message }) => /events\.jsonl|readable\.md/.exec(message)?.[0]).sort()).toEqual([
      "events.jsonl",
      "readable.md",
    ]);
  });

  test("a state directory that is a link elsewhere is followed", async () => {
    const options = directoryFor(backend);
    const elsewhere = tempDir();
    mkdirSync(options.directory);
    symlinkSync(elsewhere, join(options.directory, "state"));
    await using session = await openSession(options);
    await agentOf(session).prompt("Hello");
    await session.close();
    expect(readdirSync(elsewhere)).toEqual([backend === "json" ? "state.json" : "state.sqlite3"]);
    expect((await readState(options.directory)).messages).toHaveLength(2);
  });
});

test("readState gives the same JSON for both backends", async () => {
  const states = await Promise.all(
    BACKENDS.map(async (backend) => {
      const options = directoryFor(backend);
      await using session = await openSession(options);
      const { checkpointer, threadId } = session;
      await checkpointer.claimRun(threadId, "one");
      const call = toolCall("c", "look", { z: 1, a: [null, "\0"] });
      const content = [call];
      await checkpointer.append(threadId, [
        { role: "user", content: [{ type: "text", text: "Hi \u{1f600}" }], timestamp: 1, metadata: {}, run_id: "one" },
        { role: "assistant", content, timestamp: 2, metadata: {}, run_id: "one" },
      ]);
      await checkpointer.saveExtra(threadId, { b: 1, a: { "10": 1, "2": 2 } });
      const payload = { kind: "confirm" as const, prompt: "Go on?", details: null };
      await checkpointer.savePendingRequest(
        threadId,
        { question_id: "q", thread_id: threadId, payload, created_at: 3, timeout_seconds: null },
        { runId: "one" },
      );
      await checkpointer.saveHitlAnswer(threadId, "earlier", false, { runId: "one" });
      return JSON.stringify(await readState(options.directory)).replaceAll(/"\d{4}-[^"]*Z"/g, '"<time>"');
    }),
  );
  expect(states[0]).toBe(states[1]);
  expect(states[0]).toContain('"state":"awaiting_answer"');
});

test("both stores in one directory are refused under every setting, and neither is touched", async () => {
  const directory = join(tempDir(), "session");
  mkdirSync(join(directory, "state"), { recursive: true });
  for (const name of ["state.json", "state.sqlite3"]) writeFileSync(join(directory, "state", name), "");
  for (const backend of [undefined, ...BACKENDS]) {
    for (const restore of ["if_present", "never"] as const) {
      const options = { directory, restore, ...(backend ? { backend } : {}) };
      await expect(openSession(options)).rejects.toMatchObject({ code: "session_ambiguous" });
      await expect(readState(options)).rejects.toMatchObject({ code: "session_ambiguous" });
    }
  }
  expect(readdirSync(join(directory, "state"))).toEqual(["state.json", "state.sqlite3"]);
});

test("a session that is not enabled lives in memory, writes nothing and offers no memory tools", async () => {
  const directory = join(tempDir(), "session");
  await using session = await openSession({ enabled: false, directory, events: true, readable: true });
  expect(session.tools).toEqual([]);
  expect((await agentOf(session).prompt("Hello")).status).toBe("completed");
  await session.close();
  expect(existsSync(directory)).toBe(false);
});

test("JSON offers no memory tools and no word of them; SQLite offers both, with their guidance", async () => {
  for (const backend of BACKENDS) {
    await using session = await openSession(directoryFor(backend));
    const model = new ScriptedModel(["Hi."]);
    await new Agent({ model, system: "Be kind.", ...session.agentOptions() }).prompt("Hello");
    const { system, tools } = model.requests[0] ?? {};
    const names = backend === "sqlite" ? ["memory_search", "memory_fetch"] : [];
    expect(tools?.map(({ name }) => name)).toEqual(names);
    expect(system?.startsWith("Be kind.")).toBe(true);
    expect(system?.includes("memory_search")).toBe(backend === "sqlite");
  }
});

test("a network's file system is known by its type, also as a signed number", () => {
  expect(networkFileSystem(0x6969)).toBe("NFS");
  expect(networkFileSystem(0xff534d42 | 0)).toBe("CIFS");
  expect(networkFileSystem(0xef53)).toBeUndefined();
});
