// A child that does what a script says until it is killed. The script is one line of JSON on stdin, so that a process can be
// started ahead; what it says on stdout is in ops.ts. It runs what is built, since it is started thousands of times.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const said = new Int32Array(new SharedArrayBuffer(4));
const say = (...about) => {
  writeSync(1, `${JSON.stringify(about)}\n`);
  Atomics.add(said, 0, 1);
  Atomics.notify(said, 0);
};

// A thread of its own, since this one may stand in the middle of a write; and no other process is as quick.
const killer = new Worker(
  `const { workerData: said, parentPort } = require("node:worker_threads");
  parentPort.once("message", ({ lines, afterMs }) => {
    for (let now; (now = Atomics.load(said, 0)) < lines; ) Atomics.wait(said, 0, now);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, afterMs);
    process.kill(process.pid, "SIGKILL");
  });`,
  { eval: true, workerData: said },
);
killer.unref();

const doors = {
  sqlite: async () => {
    const { SqliteCheckpointer } = await import("everthread/sqlite");
    return ({ path, journalMode, durability }) => SqliteCheckpointer.open(path, { journalMode, durability });
  },
  history: async () => {
    const { SqliteMemoryHistory } = await import("everthread/history");
    return ({ path }) => SqliteMemoryHistory.open(path);
  },
  json: async () => {
    const { JsonCheckpointer } = await import("everthread/json");
    return ({ state, memory }) => JsonCheckpointer.open({ state, memory });
  },
  session: async () => {
    const { openSession } = await import("everthread/session");
    // It loads the one it needs when it opens: that is no part of what is tested.
    await Promise.all([import("everthread/sqlite"), import("everthread/json")]);
    return async ({ directory, backend }) => {
      const session = await openSession({ directory, backend });
      return [session.checkpointer, () => session.close()];
    };
  },
  postgres: async () => {
    const { PostgresCheckpointer } = await import("everthread/postgres");
    return ({ url }) => PostgresCheckpointer.open(url);
  },
  mysql: async () => {
    const { MySQLCheckpointer } = await import("everthread/mysql");
    return ({ url }) => MySQLCheckpointer.open(url);
  },
};

/** Does one operation of ops.ts. */
async function perform(store, { op, thread, ...about }) {
  switch (op) {
    case "append": {
      const expectedRevision = about.expected ? ((await store.load(thread))?.revision ?? 0) : undefined;
      return await store.append(thread, about.messages, { expectedRevision });
    }
    case "share":
      return await store.append(thread, [about.message]);
    case "claimRun":
    case "markRunComplete":
      return await store[op](thread, about.run);
    case "saveExtra":
      return await store.saveExtra(thread, about.extra);
    case "fork":
      return await store.fork(thread, about.target, { afterRunId: about.afterRun, metadata: about.metadata });
    case "compact": {
      const { items } = await store.listMessages(thread, { limit: about.count });
      const { summary, system } = about;
      return await store.archives.compact(thread, { upTo: items.at(-1)?.position ?? 0, summary, system });
    }
    case "prune":
      return await store.archives.prune(thread, { keep: about.keep });
    case "ask":
      return await store.savePendingRequest(thread, about.request, { runId: about.run });
    case "answer": {
      const { question: questionId, run: runId, answer, next } = about;
      if (!(await store.answerPending(thread, { questionId, runId, answer, next })))
        throw new Error("It did not pend.");
      return;
    }
    case "clearAnswers":
      return await store.clearHitlAnswers(thread, { runId: about.run });
    case "deleteThread":
      if (!(await store.deleteThread(thread))) throw new Error("There was no such thread.");
      return;
    case "add":
      if (about.records.length === 1) return await store.add(about.records[0]);
      return await store.addBatch(about.records);
    case "saveMessages":
      return await store.saveMessages(about.scope, about.messages, { keep: about.keep });
    default:
      throw new Error(`There is no operation ${op}.`);
  }
}

const open = await doors[process.argv[2]]();
for await (const line of createInterface({ input: process.stdin })) {
  const { store: at, lanes, kill, goOn, lie } = JSON.parse(line);
  if (kill) killer.postMessage(kill);
  const opened = await open(at);
  const [store, close] = Array.isArray(opened) ? opened : [opened, () => opened.close()];
  say("open");
  await Promise.all(
    lanes.map(async (ops, lane) => {
      for (const [n, op] of ops.entries()) {
        say("intend", lane, n);
        try {
          if (lie) say("done", lane, n);
          await perform(store, op);
          if (!lie) say("done", lane, n);
        } catch (error) {
          say("refused", lane, n, { name: error.name, code: error.code ?? null, message: error.message });
          if (!goOn) return;
        }
      }
    }),
  );
  say("end");
  await close();
  break;
}
process.exit();
