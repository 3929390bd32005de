/** `everthread doctor`: looks for damage and loose ends, and changes nothing. */
import type { Checkpointer } from "../../checkpoint/checkpointer.ts";
import { messageOf } from "../../errors.ts";
import { harmlessLine } from "../../util/text.ts";
import { checkThread, type Problem } from "../check-thread.ts";
import type { Context } from "../context.ts";
import { EXIT } from "../errors.ts";
import { allThreads, withStore } from "../store.ts";
import { count } from "../text.ts";

export async function doctor(context: Context): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    const found: Problem[] = [];
    const total = { threads: 0, messages: 0, damage: 0, warnings: 0 };
    for await (const problem of problemsOf(store, total)) {
      total[problem.severity === "damage" ? "damage" : "warnings"]++;
      if (out.json) found.push(problem);
      else
        await out.line(describe(problem, (text) => out.style(problem.severity === "damage" ? "red" : "yellow", text)));
    }
    if (out.json) await out.record({ sound: total.damage === 0, ...total, problems: found });
    else await out.line(summary(total));
    return total.damage > 0 ? EXIT.failure : EXIT.ok;
  });
}

async function* problemsOf(store: Checkpointer, total: { threads: number; messages: number }): AsyncGenerator<Problem> {
  yield* await integrity(store);
  try {
    for await (const info of allThreads(store)) {
      total.threads++;
      total.messages += info.messageCount;
      yield* await checkThread(store, info);
    }
  } catch (error) {
    const problem = `The threads can't all be listed, so others may not have been looked at: ${messageOf(error)}`;
    yield { severity: "damage", kind: "unreadable", problem };
  }
}

async function integrity(store: Checkpointer): Promise<Problem[]> {
  if (store.capabilities.integrityCheck !== true) return [];
  try {
    const problems = (await store.checkIntegrity()).flatMap((text) => text.split("\n"));
    return problems.map((problem) => ({ severity: "damage", kind: "integrity", problem }));
  } catch (error) {
    return [{ severity: "damage", kind: "integrity", problem: messageOf(error) }];
  }
}

function describe({ severity, thread_id, row_ref, problem }: Problem, colour: (text: string) => string): string {
  const where = [thread_id, row_ref].filter((part) => part !== undefined).map((part) => `${harmlessLine(part)}: `);
  return `${colour(severity)} ${where.join("")}${harmlessLine(problem)}`;
}

function summary({
  threads,
  messages,
  damage,
  warnings,
}: Record<"threads" | "messages" | "damage" | "warnings", number>) {
  const looked = `${count(threads, "thread")}, ${count(messages, "message")}`;
  if (damage === 0 && warnings === 0) return `Sound: ${looked}.`;
  return `${damage === 0 ? "Sound, with loose ends" : "Damaged"}: ${looked}, ${damage} damaged, ${count(warnings, "warning")}.`;
}
