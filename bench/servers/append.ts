/** Appends of 16 threads at once through a pool of 10: several appenders, by turns. */
import type { Message } from "../../src/messages/schema.ts";
import { type Figure, ratios, repeat, time } from "../measure.ts";
import { turnOf } from "./conversation.ts";

export const POOL = 10;
const WRITERS = 16;
const APPENDS = 25;

/** Appends one message to a thread that stands at a revision, and gives the new revision. */
export interface Appender {
  append(threadId: string, message: Message, expected: number): Promise<number>;
  close(): Promise<void>;
}

/** @param how what is said of the server, after each name */
export async function measureAppend(
  appenders: { ours: Appender; same: Appender; plain: Appender },
  how = "",
): Promise<Figure[]> {
  const revisions = new Map<string, number>();
  const [message] = turnOf(1).messages;
  const write = async (appender: Appender, threadId: string) => {
    let revision = revisions.get(threadId) ?? 0;
    for (let i = 0; i < APPENDS && message; i++) revision = await appender.append(threadId, message, revision);
    revisions.set(threadId, revision);
  };
  const all = (name: keyof typeof appenders) =>
    time(() => Promise.all(Array.from({ length: WRITERS }, (_, i) => write(appenders[name], `${name} ${i}`))));
  const { ours, same, plain } = await repeat(async () => ({
    ours: await all("ours"),
    same: await all("same"),
    plain: await all("plain"),
  }));
  for (const appender of Object.values(appenders)) await appender.close();
  const perSecond = (times: number[]) => times.map((ms) => (WRITERS * APPENDS * 1000) / ms);
  return [
    { what: `16 threads append at once, pool of 10${how}`, unit: "/s", values: perSecond(ours) },
    { what: `the same statements, bare${how}`, unit: "/s", values: perSecond(same) },
    { what: `plain statements, bare${how}`, unit: "/s", values: perSecond(plain) },
    { what: `append / the same, bare${how}`, unit: "×", values: ratios(same, ours), target: { least: 0.8 } },
    { what: `append / plain, bare${how}`, unit: "×", values: ratios(plain, ours) },
  ];
}
