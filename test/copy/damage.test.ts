/** Threads that can't be copied whole: named by their row, never copied in part, and no hindrance to the others. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { copyThreads } from "../../src/copy/copy.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { everything, fill, idsOf, makeStore } from "./stores.ts";

const INSERT = "INSERT INTO messages (thread_id, message_json) VALUES ('b', ?)";
const deep = `{"role":"user","content":[],"x":${"[".repeat(600)}${"]".repeat(600)}}`;
const cases: [what: string, sql: string, parameter: string, rowRef: string | RegExp, reason: RegExp][] = [
  ["a message that is no JSON", INSERT, "nonsense", /^messages\.id=\d+$/, /JSON/],
  ["an unknown role", INSERT, '{"role":"developer","content":[]}', /^messages\.id=\d+$/, /message\.role/],
  ["a message deeper than any store takes", INSERT, deep, /^messages\.id=\d+$/, /deeper than 500/],
  [
    "a message of a run whose id is too long",
    INSERT,
    JSON.stringify(userMessage("x", { run_id: "r".repeat(65) })),
    /^messages\.id=\d+$/,
    /at most 64/,
  ],
  [
    "a run id that is too long",
    "INSERT INTO runs (thread_id, run_id) VALUES ('b', ?)",
    "r".repeat(65),
    /^run "r+"$/,
    /64/,
  ],
  [
    "extra that is no object",
    "UPDATE thread_extra SET extra_json = ? WHERE thread_id = 'b'",
    "[1]",
    'thread_extra.thread_id="b"',
    /object/,
  ],
  [
    "a question of no kind",
    "UPDATE thread_pending_request SET request_json = ? WHERE thread_id = 'b'",
    "{}",
    'thread_pending_request.thread_id="b"',
    /question_id/,
  ],
  [
    "an answer that is no JSON",
    "UPDATE thread_hitl_answers SET answer_json = ? WHERE thread_id = 'b' AND question_id = 'r'",
    "yes",
    'thread_hitl_answers.question_id="r"',
    /JSON/,
  ],
];

test.each(cases)(
  "%s: nothing of the thread is written, its row is named, the others are copied",
  async (_what, sql, parameter, rowRef, reason) => {
    const path = join(tempDir(), "a.db");
    await using source = await SqliteCheckpointer.open(path);
    for (const id of ["a", "b", "c"]) await fill(source, id);
    // Damage far behind what one transaction would hold.
    await source.append(
      "b",
      Array.from({ length: 1200 }, (_, i) => userMessage(`${i}`)),
    );
    const damaging = new DatabaseSync(path);
    damaging.prepare(sql).run(parameter);
    damaging.close();
    const target = await makeStore("sqlite");
    const { damaged, ...rest } = await copyThreads(source, target);
    expect(rest).toMatchObject({ copied: 2, conflicts: [], differences: [] });
    expect(damaged).toEqual([
      {
        threadId: "b",
        rowRef: typeof rowRef === "string" ? rowRef : expect.stringMatching(rowRef),
        reason: expect.stringMatching(reason),
      },
    ]);
    expect(await idsOf(target)).toEqual(["a", "c"]);
    expect(await everything(target, "c")).toEqual(await everything(source, "c"));
  },
);

test("damaged rows in the target are a conflict", async () => {
  const source = await makeStore("memory");
  for (const id of ["a", "b"]) await fill(source, id);
  const path = join(tempDir(), "b.db");
  await using target = await SqliteCheckpointer.open(path);
  await copyThreads(source, target, { threadIds: ["a"] });
  const damaging = new DatabaseSync(path);
  damaging.exec("UPDATE thread_extra SET extra_json = '[' WHERE thread_id = 'a'");
  damaging.close();
  expect(await copyThreads(source, target)).toMatchObject({
    copied: 1,
    conflicts: [{ threadId: "a", reason: "the store's own rows of it are damaged" }],
  });
});

test("a thread whose pages can't be read hides no other; a source that is locked or closed ends the copy", async () => {
  const store = new MemoryCheckpointer();
  for (const id of ["a", "b", "c"]) await fill(store, id);
  const failing = (code: string): Checkpointer =>
    new Proxy(store, {
      get(_, name) {
        const value: unknown = Reflect.get(store, name, store);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (name === "listMessages" && args[0] === "b") throw Object.assign(new Error("malformed"), { code });
          return value.apply(store, args);
        };
      },
    });
  expect(await copyThreads(failing("store_error"), new MemoryCheckpointer())).toMatchObject({
    copied: 2,
    damaged: [{ threadId: "b", reason: "malformed" }],
  });
  for (const code of ["lock_timeout", "store_closed"]) {
    await expect(copyThreads(failing(code), new MemoryCheckpointer())).rejects.toMatchObject({ code });
  }
});

test("E2 half an emoji that another program stored is mended like everywhere, and copying again changes nothing", async () => {
  const path = join(tempDir(), "a.db");
  await using source = await SqliteCheckpointer.open(path);
  const planting = new DatabaseSync(path);
  planting
    .prepare("INSERT INTO messages (thread_id, message_json) VALUES ('t', ?)")
    .run(String.raw`{"role":"user","content":"cut \ud83d","metadata":{"k\udd11":"\ud83d\ude00"}}`);
  planting.prepare("INSERT INTO thread_extra (thread_id, extra_json) VALUES ('t', ?)").run(String.raw`{"e":"\udd11"}`);
  planting.close();
  const target = await makeStore("file");
  expect(await copyThreads(source, target)).toMatchObject({ copied: 1, differences: [] });
  expect(await target.load("t")).toMatchObject({
    messages: [{ content: [{ text: "cut \ufffd" }], metadata: { "k\ufffd": "\u{1f600}" } }],
    extra: { e: "\ufffd" },
  });
  expect(await copyThreads(source, target)).toMatchObject({ unchanged: 1 });
});
