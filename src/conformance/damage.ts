/** Damaged rows: never skipped, always named, and no trouble for other threads. */
import assert from "node:assert/strict";
import { textOf } from "../messages/construct.ts";
import { conformanceCase } from "./case.ts";
import { assertAbsent, completeRun, loaded, rejectsWith, say, texts } from "./tools.ts";

const DAMAGED: [string, string][] = [
  ["broken JSON", '{"role":"user","content":[{"type":"te'],
  ["no text at all", ""],
  ["JSON that is no object", "[1]"],
  ["null", "null"],
  ["the unknown role developer", '{"role":"developer","content":[]}'],
  ["the unknown role function", '{"role":"function","content":[]}'],
  ["an empty role", '{"role":"","content":[]}'],
  ["no role", '{"content":[]}'],
  ["a number as content", '{"role":"user","content":5}'],
];

export const damageCases = [
  ...DAMAGED.map(([what, json]) =>
    conformanceCase(
      `M14 D2 a row of ${what} is named by load and listed with its error`,
      async ({ store, plantRow }) => {
        await store.append("thread", [say("before")]);
        await plantRow("thread", json);
        await store.append("thread", [say("after")]);
        const { items } = await store.listMessages("thread");
        assert.deepEqual(
          items.map((entry) => entry.message && textOf(entry.message)),
          ["before", undefined, "after"],
        );
        const damaged = items[1];
        assert.ok(damaged?.error);
        const { rowRef } = damaged;
        const where = { threadId: "thread", backend: store.capabilities.backend, rowRef };
        await rejectsWith(Promise.reject(damaged.error), "checkpoint_corruption", where);
        assert.ok(damaged.error.cause instanceof Error);
        await rejectsWith(store.load("thread"), "checkpoint_corruption", where);
      },
      ["plantRow"],
    ),
  ),

  conformanceCase(
    "X10 a damaged thread is listed, counted and erasable, and others are unaffected",
    async ({ store, plantRow }) => {
      await store.append("a", [say("fine")]);
      await store.append("b", [say("damaged")]);
      await plantRow("b", "{");
      await completeRun(store, "c", "run");
      const { items } = await store.listThreads();
      assert.deepEqual(
        items.map((thread) => [thread.threadId, thread.messageCount]),
        [
          ["a", 1],
          ["b", 2],
          ["c", 2],
        ],
      );
      assert.deepEqual(await texts(store, "a"), ["fine"]);
      assert.equal((await store.snapshot("c", { afterRunId: "run" })).length, 2);
      assert.equal(await store.deleteThread("b"), true);
      await assertAbsent(store, "b");
    },
    ["plantRow"],
  ),

  conformanceCase(
    "A snapshot or fork of a damaged thread is never silently short",
    async ({ store, plantRow }) => {
      await plantRow("thread", '{"role":"developer","content":[]}');
      await completeRun(store, "thread", "run");
      await rejectsWith(store.snapshot("thread", { afterRunId: "run" }), "checkpoint_corruption");
      const refused: unknown = await store
        .fork("thread", "fork", { afterRunId: "run" })
        .catch((error: unknown) => error);
      // A backend may copy rows without reading them: then the fork is damaged as its source is, and says so.
      if (refused === undefined) await rejectsWith(store.load("fork"), "checkpoint_corruption");
      else {
        await rejectsWith(Promise.reject(refused), "checkpoint_corruption");
        await assertAbsent(store, "fork");
      }
    },
    ["plantRow"],
  ),

  conformanceCase(
    "M9 M15 rows of other programs load: content null or empty text, unknown blocks and fields",
    async ({ store, plantRow }) => {
      await plantRow("thread", '{"role":"assistant","content":null}');
      await plantRow("thread", '{"role":"user","content":""}');
      await plantRow("thread", '{"role":"user","content":"plain text"}');
      await plantRow("thread", '{"role":"user","content":[{"type":"video_v9","foo":1}],"id":7,"run_id":null}');
      const { messages } = await loaded(store, "thread");
      assert.deepEqual(messages, [
        { role: "assistant", content: [] },
        { role: "user", content: [] },
        { role: "user", content: [{ type: "text", text: "plain text" }] },
        { role: "user", content: [{ type: "video_v9", foo: 1 }], id: 7, run_id: null },
      ]);
    },
    ["plantRow"],
  ),
];
