/**
 * A process that appends numbered messages to threads in turn until they are all there: argv URL, thread, name, count,
 * threads. It begins where the logs say it stands, since it may have been killed and started again, and prints each number
 * that was acknowledged.
 */
import { writeSync } from "node:fs";
import { ThreadConflictError } from "../../src/checkpoint/errors.ts";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";

const [, , url = "", thread = "", name = "", count = "0", threads = "1"] = process.argv;
await using checkpointer = await MySQLCheckpointer.open(url, { maxPoolSize: 2 });

/** Message n is in thread n modulo their number, so what is there is the beginning of the sequence. */
async function readLogs(): Promise<{ next: number; revisions: number[] }> {
  const revisions: number[] = [];
  let next = 0;
  for (let i = 0; i < Number(threads); i++) {
    const loaded = await checkpointer.load(`${thread} ${i}`);
    revisions.push(loaded?.revision ?? 0);
    next += (loaded?.messages ?? []).filter((message) => textOf(message).startsWith(`${name} `)).length;
  }
  return { next, revisions };
}

let { next, revisions } = await readLogs();
while (next < Number(count)) {
  const i = next % Number(threads);
  try {
    const options = { expectedRevision: revisions[i] };
    revisions[i] = await checkpointer.append(`${thread} ${i}`, [userMessage(`${name} ${next}`)], options);
    writeSync(1, `${next++}\n`);
  } catch (error) {
    // Another writer came first.
    if (!(error instanceof ThreadConflictError)) throw error;
    revisions[i] = error.actual;
  }
}
