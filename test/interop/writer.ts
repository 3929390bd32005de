/** A process that writes runs with Everthread: writer.ts FILE THREAD RUNS. Each run is two messages, claimed and completed. */
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, userMessage } from "../../src/messages/construct.ts";

const [file = "", thread = "", runs = ""] = process.argv.slice(2);
const checkpointer = await SqliteCheckpointer.open(file);
let revision = (await checkpointer.load(thread))?.revision ?? 0;
for (let i = 0; i < Number(runs); i++) {
  const fields = { run_id: `run-${i}` };
  await checkpointer.claimRun(thread, fields.run_id);
  revision = await checkpointer.append(thread, [userMessage(`question ${i}`, fields)], { expectedRevision: revision });
  revision = await checkpointer.append(thread, [assistantMessage(`answer ${i}`, fields)], {
    expectedRevision: revision,
  });
  await checkpointer.markRunComplete(thread, fields.run_id);
}
await checkpointer.close();
