/** What `chat` and `respond` have in common: the agent on a thread, made of their options. */
import { Agent } from "../agent/agent.ts";
import type { ApprovalPolicy } from "../agent/approvals.ts";
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import { OfflineModel } from "../model/offline.ts";
import type { Session } from "../session/session.ts";
import { withoutPassword } from "../util/urls.ts";
import type { Context } from "./context.ts";
import { loadModel, type ModelOptions, modelName } from "./models.ts";
import { loadTools } from "./tools.ts";

export interface RunOptions extends ModelOptions {
  system?: string;
  tools?: string;
}

export interface Setup {
  /** @param session the one that the store belongs to, which brings tools and settings of its own (Default: none) */
  agentOn(store: Checkpointer, threadId: string, session?: Session): Agent;
  /** The options again, for a command that goes on with what this one began. */
  repeat: string[];
}

/** An agent that can close a thread's question, for which it needs neither a model nor tools. */
export function closingAgent(checkpointer: Checkpointer, threadId: string): Agent {
  return new Agent({ model: new OfflineModel(), checkpointer, threadId });
}

/** @param which which tools need a person (Default: as the tools' module says, else all) */
export async function setUp(
  { out, db, session, config }: Context,
  options: RunOptions,
  which: string | undefined,
): Promise<Setup> {
  const { system, tools: path } = options;
  const toolbox = await loadTools(path, which);
  const model = await loadModel(options);
  if (options.model === undefined && modelName(options) === "offline") {
    out.note(out.noteStyle("dim", "Model: offline, a few rules and no language model. --model names another."));
  }
  const repeated = {
    "--db": db && withoutPassword(db),
    "--session": session,
    "--config": config,
    "--model": options.model,
    "--base-url": options.baseUrl,
    "--system": system,
    "--tools": path,
    "--approve-tools": which,
  };
  return {
    agentOn: (checkpointer, threadId, owner) => {
      if (!owner) return new Agent({ model, system, checkpointer, threadId, ...toolbox });
      const own = owner.agentOptions(toolbox.tools);
      // Looking up what was said in this very conversation needs nobody's leave.
      const free = owner.tools.map(({ name }) => name as string);
      const approve: ApprovalPolicy = (call) => (free.includes(call.toolName) ? "allow" : toolbox.approve(call));
      return new Agent({ model, system, ...own, approve, middleware: [...toolbox.middleware, ...own.middleware] });
    },
    repeat: Object.entries(repeated).flatMap(([name, value]) => (value === undefined ? [] : [name, value])),
  };
}
