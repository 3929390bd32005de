/** What docs/scaling.md tells an administrator to run, run as it stands but for names that the tests' server shares. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { assistantMessage, userMessage } from "../../src/messages/construct.ts";
import { openCheckpointer } from "../../src/open.ts";
import { servers } from "./servers.ts";

const PAGE = readFileSync("docs/scaling.md", "utf8");

/** The SQL of the block that begins with this comment. */
function block(comment: string): string {
  const found = [...PAGE.matchAll(/^```sql\n-- ([^\n]*)\n([\s\S]*?)^```$/gm)].find(([, first]) => first === comment);
  if (!found?.[2]) throw new Error(`The page has no block ${comment}.`);
  return found[2];
}

/** Everything that writes, once. */
async function useAll(store: Checkpointer): Promise<void> {
  const request = {
    question_id: "q",
    thread_id: "t",
    payload: { kind: "confirm" as const, prompt: "Sure?" },
    created_at: 1,
  };
  await store.claimRun("t", "r");
  await store.append("t", [userMessage("hi", { run_id: "r" }), assistantMessage("yes", { run_id: "r" })]);
  await store.saveExtra("t", { a: 1 });
  await store.savePendingRequest("t", request, { runId: "r" });
  await store.answerPending("t", { questionId: "q", runId: "r", answer: true });
  await store.clearHitlAnswers("t", { runId: "r" });
  await store.markRunComplete("t", "r");
  await store.fork("t", "fork", { afterRunId: "r" });
  await store.fork("fork", "fork of it", { afterRunId: "r" });
  expect(await store.deleteThread("t")).toBe(true);
  expect((await store.load("fork"))?.messages).toHaveLength(2);
  expect(await store.deleteThread("fork")).toBe(true);
  expect((await store.load("fork of it"))?.parentThreadId).toBe(null);
}

for (const { label, missing, name, database, schemaSql } of servers) {
  describe.skipIf(missing)(label, () => {
    test("the documented rights are enough for a program, and for nothing more", async () => {
      const db = await database();
      await db.run(schemaSql());
      const user = `agents_${randomBytes(5).toString("hex")}`;
      const written = block(name === "postgres" ? "Postgres: a role for programs" : "MySQL: a user for programs");
      const url = new URL(db.url);
      await db.run(written.replaceAll("agents", user).replaceAll(" app.", ` ${url.pathname.slice(1)}.`));
      onTestFinished(async () => {
        await db.run(name === "postgres" ? `DROP OWNED BY ${user}; DROP ROLE ${user}` : `DROP USER ${user}`);
      });
      url.username = user;
      url.password = "change-me";
      await using store = await openCheckpointer(url.href);
      await useAll(store);
      await expect(openCheckpointer(`${url.href}?tablePrefix=other_`)).rejects.toMatchObject({
        code: "schema_uninitialized",
      });
    });
  });
}

test("a store on Postgres does not need the foreign key that Citus can't have", async () => {
  const [postgres] = servers;
  const db = await postgres?.database();
  if (!postgres || !db) throw new Error("There is no Postgres.");
  await db.run(postgres.schemaSql());
  const [drop = ""] = block("Citus: on the coordinator, after the migration").split(";\n");
  await db.run(drop);
  expect((await db.catalog()).filter((line) => line.includes("parent_thread_id_fkey"))).toEqual([]);
  await using store = await openCheckpointer(db.url);
  await useAll(store);
});
