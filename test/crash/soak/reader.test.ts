/** A reader that meets what a killed writer left in the middle of a write. */
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { SqliteCheckpointer } from "../../../src/checkpoint/sqlite/checkpointer.ts";
import { StoreOpenError } from "../../../src/db/errors.ts";
import { userMessage } from "../../../src/messages/construct.ts";
import { tempDir } from "../../support/temp.ts";

/** A store with one message, and the files as a kill in the middle of the next write leaves them. */
async function cutShort(dir: string): Promise<string> {
  const [path, left] = [join(dir, "state.db"), join(dir, "left.db")];
  const store = await SqliteCheckpointer.open(path);
  await store.append("t", [userMessage("acknowledged")]);
  await store.close();
  const db = new DatabaseSync(path);
  // Too much for its memory: it goes to the file before the commit.
  db.exec("PRAGMA cache_size = 5; BEGIN IMMEDIATE");
  const insert = db.prepare("INSERT INTO messages (thread_id, message_json) VALUES ('t', ?)");
  for (let i = 0; i < 200; i++) insert.run("x".repeat(1000));
  for (const suffix of ["", "-journal"]) copyFileSync(path + suffix, left + suffix);
  db.close();
  return left;
}

test("a store that was left in the middle of a write tells a reader so, changes nothing, and is whole once opened to write", async () => {
  const path = await cutShort(tempDir());
  const before = readFileSync(path);
  const refusal = await SqliteCheckpointer.open(path, { readOnly: true }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StoreOpenError);
  expect(String(refusal)).toContain("was left in the middle of a write");
  expect(readFileSync(path).equals(before)).toBe(true);

  const store = await SqliteCheckpointer.open(path);
  expect((await store.load("t"))?.messages).toHaveLength(1);
  await store.close();
  const reader = await SqliteCheckpointer.open(path, { readOnly: true });
  expect((await reader.load("t"))?.messages).toHaveLength(1);
  await reader.close();
});

test("an open reader is told the same when a writer is killed meanwhile", async () => {
  const path = await cutShort(tempDir());
  const whole = `${path}.whole`;
  const writer = await SqliteCheckpointer.open(whole);
  await writer.append("t", [userMessage("acknowledged")]);
  await writer.close();
  const reader = await SqliteCheckpointer.open(whole, { readOnly: true });
  for (const suffix of ["", "-journal"]) copyFileSync(path + suffix, whole + suffix);
  await expect(reader.load("t")).rejects.toThrow("was left in the middle of a write");
  await reader.close();
});
