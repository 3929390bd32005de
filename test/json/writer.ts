// A child that does one thing to a JSON store and dies at its nth change of the file system, before it is made:
// argv state, memory, what to do, n (0 for never). It says "done" when it got to the end.

import fs from "node:fs";
import * as promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { userMessage } from "../../src/messages/construct.ts";

const [, , state = "", memory = "", what = "", at = "0"] = process.argv;
const store = await JsonCheckpointer.open({ state, memory });

let changes = 0;
function dieInTime(): void {
  changes++;
  if (changes === Number(at)) process.kill(process.pid, "SIGKILL");
}

type Method = (...args: unknown[]) => unknown;
function watch(owner: object, name: string, isChange: (args: unknown[]) => boolean = () => true): void {
  const methods = owner as Record<string, Method>;
  const method = methods[name] as Method;
  methods[name] = function (this: unknown, ...args: unknown[]) {
    if (isChange(args)) dieInTime();
    return method.apply(this, args);
  };
}

const handle = await promises.open(state, "r");
for (const name of ["writeFile", "sync", "chmod", "chown"]) watch(Object.getPrototypeOf(handle), name);
await handle.close();
for (const name of ["writeFile", "mkdir", "rename", "rm", "rmdir"]) watch(fs.promises, name);
watch(fs.promises, "open", ([, flags]) => flags !== "r");
syncBuiltinESMExports();

const OPERATIONS: Record<string, () => Promise<unknown>> = {
  none: async () => {},
  append: () => store.append("session", [userMessage("4"), userMessage("5")], { expectedRevision: 3 }),
  compact: () => store.archives.compact("session", { upTo: 2, summary: "two" }),
  prune: () => store.archives.prune("session", { keep: 1 }),
  fork: () => store.fork("session", "fork", { afterRunId: "r" }),
  delete: () => store.deleteThread("session"),
};
await OPERATIONS[what]?.();
process.stdout.write("done\n");
