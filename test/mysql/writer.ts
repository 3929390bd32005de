/**
 * A process that appends numbered messages to its thread until they are all there: argv URL, thread, name, count. It begins
 * where the log says it stands, since it may have been killed and started again, and prints each number that was acknowledged.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionLostError, StoreOpenError, ThreadConflictError } from "../../src/checkpoint/errors.ts";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";

const [, , url = "", thread = "", name = "", count = "0"] = process.argv;
const checkpointer = await open();

for (;;) {
  try {
    const loaded = await checkpointer.load(thread);
    const texts = (loaded?.messages ?? []).map(textOf);
    let revision = loaded?.revision ?? 0;
    let next = texts.filter((text) => text.startsWith(`${name} `)).length;
    while (next < Number(count)) {
      revision = await checkpointer.append(thread, [userMessage(`${name} ${next}`)], { expectedRevision: revision });
      writeSync(1, `${next++}\n`);
    }
    break;
  } catch (error) {
    // The thread has moved, or the server is away: what is stored is read again, and nothing is written twice.
    if (error instanceof ConnectionLostError) await sleep(20);
    else if (!(error instanceof ThreadConflictError)) throw error;
  }
}
await checkpointer.close();

async function open(): Promise<MySQLCheckpointer> {
  for (;;) {
    try {
      return await MySQLCheckpointer.open(url, { maxPoolSize: 2 });
    } catch (error) {
      if (!(error instanceof StoreOpenError || error instanceof ConnectionLostError)) throw error;
      await sleep(20);
    }
  }
}
