/** A process that compacts a thread once: argv URL, thread, position. */
import { PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";

const [, , url = "", thread = "", upTo = ""] = process.argv;
const store = await PostgresCheckpointer.open(url, { maxPoolSize: 1 });
await store.archives?.compact(thread, { upTo: Number(upTo), summary: "by the child" });
await store.close();
