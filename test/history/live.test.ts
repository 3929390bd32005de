/** Everthread and the real Mem0 for Python on one file: what one writes the other reads, in turns and at once. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { HistoryRecord, WindowMessage } from "../../src/history/history.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { tempDir } from "../support/temp.ts";
import { golden, sql } from "./files.ts";
import { Mem0Peer, mem0Python } from "./mem0-python.ts";

const label = mem0Python.path === null ? `skipped: ${mem0Python.reason}` : `mem0ai ${mem0Python.version}`;
const TEXTS = [
  "Likes tea",
  "",
  "🧵 𠮷 e\u0301 é",
  "nul \0 after",
  "quotes \" ' %_",
  "\u2028\r\n\t",
  "x".repeat(50_000),
];

describe.skipIf(mem0Python.path === null)(`with Python (${label})`, () => {
  test("what Everthread logged is the same in Mem0, in the same order", async () => {
    const path = join(tempDir(), "history.db");
    await using ours = await SqliteMemoryHistory.open(path);
    await ours.add({ memory_id: "m", event: "ADD", new_memory: "one", actor_id: "ada", role: "user" });
    const { created_at } = (await ours.get("m"))[0] as HistoryRecord;
    await ours.addBatch(
      TEXTS.map((text) => ({ memory_id: "m", event: "UPDATE", old_memory: text, new_memory: text, actor_id: text })),
    );
    await ours.add({ memory_id: "m", event: "UPDATE", updated_at: new Date() });
    await ours.add({ memory_id: "m", event: "DELETE", old_memory: "last" });
    expect(created_at).not.toBeNull();
    await using theirs = new Mem0Peer(path);
    expect(await theirs.call("get_history", ["m"])).toEqual(await ours.get("m"));
  });

  test("what Mem0 logged is the same in Everthread, in the order written", async () => {
    const path = join(tempDir(), "history.db");
    await using theirs = new Mem0Peer(path);
    const times = { created_at: "2025-06-15T15:06:40.123456+00:00" };
    await theirs.call("add_history", ["m", null, "one", "ADD"], { ...times, actor_id: "ada", role: "user" });
    const records = TEXTS.map((text, i) => ({
      ...{ memory_id: "m", event: "UPDATE", old_memory: text, new_memory: text, actor_id: text, role: text, ...times },
      updated_at: `2025-06-15T15:07:0${i}+00:00`,
    }));
    await theirs.call("batch_add_history", [records]);
    await theirs.call("add_history", ["m", "last", null, "DELETE"], {
      ...times,
      updated_at: "2025-06-16",
      is_deleted: 1,
    });
    await using ours = await SqliteMemoryHistory.open(path);
    const log = await ours.get("m");
    expect(log).toHaveLength(TEXTS.length + 2);
    expect(log).toEqual(await theirs.call("get_history", ["m"]));
    expect(await ours.restoreAt("m", "2025-06-15T15:07:02.5Z")).toBe(TEXTS[2]);
    expect(await ours.restoreAt("m", "2025-06-17")).toBeUndefined();
  });

  test("both keep one window: what each saves, the other reads and trims", async () => {
    const path = join(tempDir(), "history.db");
    await using ours = await SqliteMemoryHistory.open(path);
    await using theirs = new Mem0Peer(path);
    const scope = "user_id=ada&agent_id=bot";
    const said = (from: number, to: number, who: string) =>
      Array.from({ length: to - from }, (_, i) => ({ role: who, content: `${from + i} ${TEXTS[i % 6]}`, name: null }));
    await ours.saveMessages(scope, said(0, 12, "user"));
    expect(await theirs.call("get_last_messages", [scope])).toEqual(await ours.recentMessages(scope));
    await theirs.call("save_messages", [[{ role: "assistant", content: "theirs", name: "bot" }], scope]);
    await ours.saveMessages(scope, said(12, 14, "user"));
    const window = await ours.recentMessages(scope);
    expect(window.map(({ content }) => content?.split(" ")[0])).toEqual([
      "5",
      "6",
      "7",
      "8",
      "9",
      "10",
      "11",
      "theirs",
      "12",
      "13",
    ]);
    expect(await theirs.call("get_last_messages", [scope, 3])).toEqual(await ours.recentMessages(scope, { limit: 3 }));
    await ours.saveMessages("other", said(0, 1, "user"));
    await theirs.call("save_messages", [said(14, 15, "user"), scope]);
    expect((await ours.recentMessages("other")).length).toBe(1);
    expect(((await theirs.call("get_last_messages", [scope])) as WindowMessage[]).length).toBe(10);
  });

  test.each(["mem0-0.0.9", "mem0-0.1.40", "mem0-upgraded"])(
    "a file that Everthread upgraded from %s is read by Mem0, which changes nothing of it",
    async (name) => {
      const path = golden(tempDir(), name);
      await using ours = await SqliteMemoryHistory.open(path);
      const schema = sql(path, "SELECT name, sql FROM sqlite_master ORDER BY name");
      await using theirs = new Mem0Peer(path);
      for (const id of ["m-1", "text-2", "none"]) {
        const log = (await theirs.call("get_history", [id])) as HistoryRecord[];
        expect(log.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
          (await ours.get(id)).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        );
      }
      expect(sql(path, "SELECT name, sql FROM sqlite_master ORDER BY name")).toEqual(schema);
      await theirs.call("add_history", ["m-1", null, "from Mem0", "ADD"]);
      expect((await ours.get("m-1")).at(-1)?.new_memory).toBe("from Mem0");
    },
  );

  test("both write at once, and every change is there", async () => {
    const path = join(tempDir(), "history.db");
    await using ours = await SqliteMemoryHistory.open(path, { busyTimeoutMs: 20_000 });
    await using theirs = new Mem0Peer(path);
    const each = Array.from({ length: 60 }, (_, i) => i);
    await Promise.all([
      (async () => {
        for (const i of each) await ours.add({ memory_id: "m", event: "ADD", new_memory: `ours ${i}` });
      })(),
      (async () => {
        for (const i of each) await theirs.call("add_history", ["m", null, `theirs ${i}`, "ADD"]);
      })(),
    ]);
    const values = (await ours.get("m")).map((record) => record.new_memory);
    for (const who of ["ours", "theirs"]) {
      expect(values.filter((value) => value?.startsWith(who))).toEqual(each.map((i) => `${who} ${i}`));
    }
  }, 60_000);

  test("after Mem0's reset, and after ours, both go on", async () => {
    const path = join(tempDir(), "history.db");
    const ours = await SqliteMemoryHistory.open(path);
    await ours.add({ memory_id: "m", event: "ADD" });
    await ours.reset();
    {
      await using theirs = new Mem0Peer(path);
      expect(await theirs.call("get_history", ["m"])).toEqual([]);
      await theirs.call("add_history", ["m", null, "one", "ADD"]);
      expect(await ours.get("m")).toHaveLength(1);
      await theirs.call("reset", []);
    }
    await ours.close();
    await using again = await SqliteMemoryHistory.open(path);
    expect(await again.get("m")).toEqual([]);
    await again.add({ memory_id: "m", event: "ADD" });
  });
});
