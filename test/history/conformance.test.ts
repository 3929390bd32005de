/** Both engines of the memory history under its conformance suite. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { historyCases, type MakeHistory, missingHistoryCapability } from "../../src/conformance/history.ts";
import { InMemoryHistory } from "../../src/history/memory/history.ts";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";

const ENGINES: Record<string, MakeHistory> = {
  memory: async () => ({ history: new InMemoryHistory() }),
  sqlite: async () => {
    const directory = await mkdtemp(join(tmpdir(), "everthread-history-"));
    const path = join(directory, "history.db");
    return {
      history: await SqliteMemoryHistory.open(path),
      reopen: () => SqliteMemoryHistory.open(path),
      dispose: () => rm(directory, { recursive: true }),
    };
  },
  ":memory:": async () => ({ history: await SqliteMemoryHistory.open(":memory:") }),
};

for (const [engine, make] of Object.entries(ENGINES)) {
  const probe = await make();
  await probe.history.close();
  await probe.dispose?.();
  describe(`conformance of the history in ${engine}`, () => {
    for (const historyCase of historyCases) {
      test(historyCase.name, async ({ skip }) => {
        const reason = missingHistoryCapability(historyCase, probe);
        if (reason) skip(reason);
        await historyCase.run(make);
      });
    }
  });
}
