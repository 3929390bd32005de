/** A worker: argv the configuration and what to do. It owns the session until it is killed. */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "../../src/agent/agent.ts";
import { toolCall } from "../../src/messages/construct.ts";
import { OfflineModel } from "../../src/model/offline.ts";
import { ScriptedModel } from "../../src/model/scripted.ts";
import { openSession } from "../../src/session/index.ts";

const [, , config = "", what] = process.argv;
const session = await openSession(JSON.parse(config));
if (what === "hold") {
  await new Agent({ model: new OfflineModel(), ...session.agentOptions() }).prompt("Hello");
  console.log("held");
} else {
  const slow = {
    name: "slow",
    description: "Takes long.",
    parameters: { type: "object" },
    execute: async () => {
      console.log("running");
      await sleep(60_000);
    },
  };
  const model = new ScriptedModel([[toolCall("c", "slow")]]);
  await new Agent({ model, ...session.agentOptions([slow]) }).prompt("Do it");
}
await sleep(60_000);
