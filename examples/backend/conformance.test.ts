/** The example backend under the conformance suite: `node --test examples/backend/conformance.test.ts` */
import { test } from "node:test";
import { conformanceCases, missingCapability } from "everthread/conformance";
import { makeStore } from "./conformance-store.ts";

const probe = await makeStore();
await probe.checkpointer.close();
await probe.dispose?.();

for (const conformanceCase of conformanceCases) {
  const reason = missingCapability(conformanceCase, probe);
  test(conformanceCase.name, { skip: reason ?? false }, () => conformanceCase.run(makeStore));
}
