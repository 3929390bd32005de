/** The loss of power, on a simulated disk that keeps only what was synced. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { Violation } from "./observe.ts";
import type { StoreAt } from "./ops.ts";
import { losePower, powerStores } from "./power.ts";
import { noStrace } from "./trace.ts";

for (const { name, at } of powerStores) {
  test.skipIf(noStrace).concurrent(
    `a loss of power keeps what was acknowledged (${name}${noStrace ? `; skipped: ${noStrace}` : ""})`,
    async () => {
      const seed = Math.floor(Math.random() * 2 ** 32);
      const report = await losePower({ at, seed, operations: 25, every: 20 }).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${error}`, { cause: error });
      });
      expect(report.acknowledged).toBe(25);
      expect(report.states).toBeGreaterThan(50);
    },
    300_000,
  );
}

for (const durability of ["normal", "off"] as const) {
  test.skipIf(noStrace).concurrent(
    `a store that does not sync (durability ${durability}) is found to lose what was acknowledged`,
    async () => {
      const at = (directory: string): StoreAt => {
        return { kind: "sqlite", path: join(directory, "state.db"), journalMode: "wal", durability };
      };
      await expect(losePower({ at, seed: 1, operations: 10, every: 5 })).rejects.toThrow(Violation);
    },
    300_000,
  );
}
