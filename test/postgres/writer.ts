/**
 * A process that appends numbered messages to threads in turn until they are all there: argv URL, thread, name, count,
 * threads. It begins where the logs say it stands, since it may have been killed and started again, and prints each number
 * that was acknowledged.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionLostError, StoreOpenError, ThreadConflictError } from "../../src/checkpoint/errors.ts";
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";

const [, , url = "", thread = "", name = "", count = "0", threads = "1"] = process.argv;
const checkpointer = await open();
const stamp = { timestamp: null };

for (;;) {
  try {
    // Message n is in thread n modulo their number, so what is there is the beginning of the sequence.
    const revisions: number[] = [];
    let next = 0;
    for (let i = 0; i < Number(threads); i++) {
      const loaded = await checkpointer.load(`${thread} ${i}`);
      revisions.push(loaded?.revision ?? 0);
      next += (loaded?.messages ?? []).filter((message) => textOf(message).startsWith(`${name} `)).length;
    }
    while (next < Number(count)) {
      const i = next % Number(threads);
      const expectedRevision = revisions[i];
      const message = userMessage(`${name} ${next}`, stamp);
      revisions[i] = await checkpointer.append(`${thread} ${i}`, [message], { expectedRevision });
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

async function open(): Promise<PostgresCheckpointer> {
  for (;;) {
    try {
      return await PostgresCheckpointer.open(url, { maxPoolSize: 2 });
    } catch (error) {
      if (!(error instanceof StoreOpenError || error instanceof ConnectionLostError)) throw error;
      await sleep(20);
    }
  }
}
