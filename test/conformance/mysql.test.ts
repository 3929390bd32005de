/** The MySQL engine under the conformance suite, on a real server. */
import { encode } from "@msgpack/msgpack";
import { afterAll, describe, test } from "vitest";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../support/mysql.ts";
import { testConformance } from "./suite.ts";

if (hasMysql) {
  const database = await testDatabase();
  afterAll(() => database[Symbol.asyncDispose]());
  const open = () => MySQLCheckpointer.open(database.url);
  await testConformance("mysql", async () => {
    await database.empty();
    return {
      checkpointer: await open(),
      reopen: open,
      async plantRow(threadId, messageJson) {
        const [next] = await database.sql(
          "SELECT COALESCE(MAX(seq), 0) + 1 AS seq FROM cubepi_messages WHERE thread_id = ?",
          [threadId],
        );
        await database.sql("INSERT IGNORE INTO cubepi_threads (thread_id) VALUES (?)", [threadId]);
        await database.sql("INSERT INTO cubepi_messages (thread_id, seq, role, payload) VALUES (?, ?, ?, ?)", [
          threadId,
          next?.seq,
          ...columnsOf(messageJson),
        ]);
      },
    };
  });
} else {
  describe.skip(`conformance of mysql (${mysqlLabel})`, () => {
    test("needs a server", () => undefined);
  });
}

/** The role and the payload of a row that holds this text in place of a message. */
function columnsOf(messageJson: string): [role: string, payload: Uint8Array] {
  try {
    const value: unknown = JSON.parse(messageJson);
    const role = (value as { role?: unknown } | null)?.role ?? "user";
    return [role === "tool_result" ? "tool" : String(role), Buffer.from(encode(value))];
  } catch {
    return ["user", Buffer.from(messageJson)];
  }
}
