/** Runs the conformance cases on one backend, under vitest. */
import { describe, test } from "vitest";
import { conformanceCases, type MakeStore, missingCapability } from "../../src/conformance/index.ts";

/** @param make opens a new, empty store */
export async function testConformance(backend: string, make: MakeStore): Promise<void> {
  const probe = await make();
  await probe.checkpointer.close();
  await probe.dispose?.();
  describe(`conformance of ${backend}`, () => {
    for (const conformanceCase of conformanceCases) {
      test(conformanceCase.name, async ({ skip }) => {
        const reason = missingCapability(conformanceCase, probe);
        if (reason) skip(reason);
        await conformanceCase.run(make);
      });
    }
  });
}
