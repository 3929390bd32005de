/** The JSON engine under the conformance suite, on files. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JsonCheckpointer } from "../../src/checkpoint/json/checkpointer.ts";
import { testConformance } from "./suite.ts";

const open = (directory: string) =>
  JsonCheckpointer.open({ state: join(directory, "state", "state.json"), memory: join(directory, "memory") });

await testConformance("json", async () => {
  const directory = await mkdtemp(join(tmpdir(), "everthread-json-"));
  const path = join(directory, "state.json");
  const openHere = () => JsonCheckpointer.open({ state: path, memory: join(directory, "memory") });
  return {
    checkpointer: await openHere(),
    reopen: openHere,
    openCopy: open,
    async plantRow(threadId, messageJson) {
      const state = JSON.parse(await readFile(path, "utf8"));
      state.threads[threadId] ??= { revision: 0, messages: [] };
      const thread = state.threads[threadId];
      state.revision++;
      thread.revision = state.revision;
      const entry = { position: state.revision, created_at: new Date(), message: "?" };
      thread.messages.push(entry);
      // What is no JSON would damage the whole file, which is another case: here it stands as a text.
      const message = isJson(messageJson) ? messageJson : JSON.stringify(messageJson);
      await writeFile(
        path,
        JSON.stringify(state).replace('"message":"?"', () => `"message":${message}`),
      );
    },
    dispose: () => rm(directory, { recursive: true }),
  };
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
