/** The in-memory engine under the conformance suite. */
import { MemoryCheckpointer } from "../../src/checkpoint/memory/checkpointer.ts";
import { testConformance } from "./suite.ts";

await testConformance("memory", async () => ({ checkpointer: new MemoryCheckpointer() }));
