/** How the conformance suite gets a new store of the example backend. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConformanceStore } from "everthread/conformance";
import { FileCheckpointer } from "./file-checkpointer.ts";
import { ThreadFiles } from "./thread-files.ts";

export async function makeStore(): Promise<ConformanceStore> {
  const directory = await mkdtemp(join(tmpdir(), "everthread-example-"));
  return {
    checkpointer: await FileCheckpointer.open(directory),
    reopen: () => FileCheckpointer.open(directory),
    async plantRow(threadId, message) {
      const files = await ThreadFiles.open(directory);
      const record = await files.read(threadId);
      const createdAt = new Date().toISOString();
      record.messages.push({ position: ++record.lastPosition, runId: null, createdAt, message });
      await files.write(record);
    },
    dispose: () => rm(directory, { recursive: true }),
  };
}
