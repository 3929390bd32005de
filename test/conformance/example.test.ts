/** The example backend under the conformance suite, both as a program that has installed the package would use them. */
import { conformanceCases, missingCapability } from "everthread/conformance";
import { test } from "vitest";
import { makeStore } from "../../examples/backend/conformance-store.ts";

const probe = await makeStore();
await probe.checkpointer.close();
await probe.dispose?.();

for (const conformanceCase of conformanceCases) {
  test(conformanceCase.name, async ({ skip }) => {
    const reason = missingCapability(conformanceCase, probe);
    if (reason) skip(reason);
    await conformanceCase.run(makeStore);
  });
}
