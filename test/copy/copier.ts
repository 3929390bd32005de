/** A child that copies one SQLite store to another and tells of each step. argv: from, to */
import { writeSync } from "node:fs";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { copyThreads } from "../../src/copy/copy.ts";

const [, , from = "", to = ""] = process.argv;
const source = await SqliteCheckpointer.open(from, { readOnly: true });
const target = await SqliteCheckpointer.open(to);
const report = await copyThreads(source, target, { onProgress: () => writeSync(1, ".\n") });
writeSync(1, `${JSON.stringify(report)}\n`);
await source.close();
await target.close();
