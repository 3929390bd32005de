// LangGraph's checkpointer under the measure: node langgraph-peer.mjs URL TURNS. Does what each line of stdin names ("append THREAD" or
// "load THREAD"), and prints how many milliseconds it took. A step is what LangGraph stores for one: what the task wrote, and a
// checkpoint with the whole list of messages, as of a graph whose state is MessagesAnnotation.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";

const [, , url, turns] = process.argv;
const saver = PostgresSaver.fromConnString(url);
await saver.setup();
const messages = JSON.parse(readFileSync(turns, "utf8"))
  .flatMap((turn) => turn.messages)
  .map(converted);

/** The same message as LangChain holds it, with the id that its reducer gives each. */
function converted(message, i) {
  const id = `message-${i}`;
  const { text } = message.content.find((block) => block.type === "text");
  if (message.role === "user") return new HumanMessage({ id, content: text });
  if (message.role === "tool_result") {
    return new ToolMessage({ id, content: text, tool_call_id: message.tool_call_id, name: message.tool_name });
  }
  const calls = message.content.filter((block) => block.type === "tool_call");
  const { input_tokens, output_tokens } = message.usage;
  return new AIMessage({
    id,
    content: text,
    tool_calls: calls.map((call) => ({ id: call.id, name: call.name, args: call.arguments, type: "tool_call" })),
    usage_metadata: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
    response_metadata: { model: message.model_id, stop_reason: message.stop_reason },
  });
}

const work = {
  async append(thread_id) {
    let config = { configurable: { thread_id, checkpoint_ns: "" } };
    const state = [];
    for (const [step, message] of messages.entries()) {
      // The writes of a task belong to the checkpoint that it ran on.
      if (step > 0) await saver.putWrites(config, [["messages", [message]]], uuid6(step));
      state.push(message);
      const checkpoint = {
        ...emptyCheckpoint(),
        id: uuid6(step),
        channel_values: { messages: state },
        channel_versions: { messages: step + 1 },
        versions_seen: { agent: { messages: step } },
      };
      config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, { messages: step + 1 });
    }
  },
  async load(thread_id) {
    const tuple = await saver.getTuple({ configurable: { thread_id } });
    const loaded = tuple.checkpoint.channel_values.messages;
    if (loaded.length !== messages.length || !(loaded[0] instanceof HumanMessage))
      throw new Error("Not what was stored.");
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, threadId] = line.split(" ");
  const start = performance.now();
  await work[name](threadId);
  console.log(performance.now() - start);
}
await saver.end();
