/** memory_search and memory_fetch as an agent calls them: within their budgets, in one thread, and plain about what is gone. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { textOf, toolCall, toolResultMessage, userMessage } from "../../src/messages/construct.ts";
import type { JsonObject } from "../../src/messages/json.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { openSession, type PersistenceOptions, type Session } from "../../src/session/index.ts";
import { tempDir } from "../support/temp.ts";

const open = (search: PersistenceOptions["search"] = {}) =>
  openSession({ directory: join(tempDir(), "session"), backend: "sqlite", search });

/** Archives these texts, oldest first. */
async function archive(
  { checkpointer, threadId }: Session,
  texts: readonly string[],
  summary = "Before.",
): Promise<void> {
  const upTo = await checkpointer.append(
    threadId,
    texts.map((text) => userMessage(text)),
  );
  await checkpointer.archives?.compact(threadId, { upTo, summary });
}

/** What the model reads of a call. */
async function call(session: Session, name: string, args: JsonObject): Promise<{ text: string; failed: boolean }> {
  const model = new ScriptedModel([[toolCall("c", name, args)], "Done."]);
  const { messages } = await new Agent({ model, ...session.agentOptions() }).prompt("Look it up");
  const result = messages.find((message) => message.role === "tool_result");
  return { text: textOf(result ?? toolResultMessage({ id: "", name: "" }, "")), failed: result?.is_error ?? false };
}
const json = async (session: Session, name: string, args: JsonObject) =>
  JSON.parse((await call(session, name, args)).text);

describe("memory_search", () => {
  test("gives the newest hits first, without the thread's id, up to the configured number whatever the model asks", async () => {
    await using session = await open({ max_results: 2, preview_bytes: 40 });
    await archive(session, ["needle one", `${"long ".repeat(50)}needle two`, "needle three"]);
    const { hits, has_more } = await json(session, "memory_search", { query: "NEEDLE", limit: 1000 });
    expect(hits.map(({ preview }: JsonObject) => String(preview).slice(-12))).toEqual(["needle three", "g needle two"]);
    expect(Object.keys(hits[0])).toEqual(["archive_id", "source_id", "role", "created_at", "preview"]);
    expect(has_more).toBe(true);
    for (const { preview } of hits) expect(Buffer.byteLength(preview)).toBeLessThanOrEqual(40);
    expect((await json(session, "memory_search", { query: "needle", limit: 1 })).hits).toHaveLength(1);
  });

  test("a search that takes too long is an error that the model reads, and the run goes on", async () => {
    await using session = await open({ time_limit_ms: 1 });
    await archive(
      session,
      Array.from({ length: 40 }, () => "x y ".repeat(40_000)),
    );
    const { text, failed } = await call(session, "memory_search", { query: "qq" });
    expect(failed).toBe(true);
    expect(text).toContain("time limit of 1 ms");
  });

  test.for(["", '"', "NEAR(a b)", "%_*", "\0", "\ud83d", "x".repeat(100_000)])(
    "S4 any query is literal",
    async (query) => {
      await using session = await open();
      await archive(session, ["plain words"]);
      expect(await json(session, "memory_search", { query })).toEqual({ hits: [], has_more: false });
    },
  );

  test("arguments that are wrong are told to the model", async () => {
    await using session = await open();
    for (const args of [{}, { query: 1 }, { query: "abc", limit: 0 }, { query: "abc", more: true }] as JsonObject[]) {
      expect((await call(session, "memory_search", args)).failed).toBe(true);
    }
  });
});

describe("memory_fetch", () => {
  test("pages through a long source by the configured number of bytes", async () => {
    await using session = await open({ fetch_bytes: 1000 });
    const whole = "needle ü😀 ".repeat(400);
    await archive(session, [whole]);
    const { hits } = await json(session, "memory_search", { query: "needle" });
    let read = "";
    const { archive_id, source_id } = hits[0];
    let page = await json(session, "memory_fetch", { archive_id, source_id });
    for (;;) {
      expect(Buffer.byteLength(page.text)).toBeLessThanOrEqual(1000);
      read += page.text;
      if (!page.has_more) break;
      page = await json(session, "memory_fetch", { archive_id, source_id, offset: page.next_offset });
    }
    expect(read).toBe(whole);
  });

  test("a source that retention removed between search and fetch is said to be gone", async () => {
    await using session = await open();
    await archive(session, ["needle one"]);
    const { hits } = await json(session, "memory_search", { query: "needle" });
    await archive(session, ["something else"]);
    await session.checkpointer.archives?.prune(session.threadId, { keep: 1 });
    const { archive_id, source_id } = hits[0];
    const { text, failed } = await call(session, "memory_fetch", { archive_id, source_id });
    expect(failed).toBe(true);
    expect(text).toContain("removed by retention");
    for (const ids of [
      { archive_id: "a9", source_id },
      { archive_id: "a2", source_id: "../x" },
    ]) {
      expect((await call(session, "memory_fetch", ids)).failed).toBe(true);
    }
  });
});
