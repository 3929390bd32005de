/** The tools of a command: those of the module that --tools names, ask_user, and who must approve what. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ApprovalPolicy } from "../agent/approvals.ts";
import { askUserTool } from "../agent/ask-user.ts";
import type { Middleware } from "../agent/middleware.ts";
import type { Tool } from "../agent/tools.ts";
import { messageOf } from "../errors.ts";
import { CommandError, UsageError } from "./errors.ts";

export interface Toolbox {
  tools: Tool[];
  approve: ApprovalPolicy;
  middleware: Middleware[];
}

/**
 * @param path an ES module: its default export, or `tools`, is an array of tools; `approve` and `middleware` may be there
 * @param which "all", "none" or names, separated by commas (Default: the module's `approve`, else all)
 * @throws UsageError for a name that no tool has @throws CommandError "tools_failed" when the module can't be used
 */
export async function loadTools(path: string | undefined, which: string | undefined): Promise<Toolbox> {
  const exported = path === undefined ? {} : await importModule(path);
  const given = exported.default ?? exported.tools ?? [];
  const middleware = (exported.middleware ?? []) as Middleware[];
  if (!Array.isArray(given)) throw unusable(path, "its default export, or tools, must be an array of tools");
  if (!Array.isArray(middleware)) throw unusable(path, "middleware must be an array");
  if (path !== undefined && exported.default === undefined && exported.tools === undefined) {
    throw unusable(path, "it exports neither a default nor tools");
  }
  if (exported.approve !== undefined && typeof exported.approve !== "function") {
    throw unusable(path, "approve must be a function");
  }
  // A module's own ask_user may come from another copy of this package; this one is the one that is asked here.
  const tools = [...(given as Tool[]).filter((tool) => tool?.name !== askUserTool.name), askUserTool];
  const names = [...tools, ...middleware.flatMap((item) => item.tools ?? [])].map((tool) => tool?.name);
  const approve = which === undefined ? (exported.approve as ApprovalPolicy | undefined) : policyOf(which, names);
  return { tools, middleware, approve: approve ?? (() => "ask") };
}

async function importModule(path: string): Promise<Record<string, unknown>> {
  const url = path.startsWith("file:") ? path : pathToFileURL(resolve(path)).href;
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (error) {
    throw unusable(path, messageOf(error), error);
  }
}

function policyOf(which: string, names: readonly string[]): ApprovalPolicy {
  if (which === "all") return () => "ask";
  if (which === "none") return () => "allow";
  const asking = which.split(",").map((name) => name.trim());
  const unknown = asking.find((name) => !names.includes(name));
  // A name mistyped would let the tool run that was to be asked about.
  if (unknown !== undefined) {
    const known = names.map((name) => JSON.stringify(name)).join(", ");
    throw new UsageError(`No tool is called ${JSON.stringify(unknown)}. There are ${known}.`);
  }
  return ({ toolName }) => (asking.includes(toolName) ? "ask" : "allow");
}

function unusable(path: string | undefined, problem: string, cause?: unknown): CommandError {
  return new CommandError("tools_failed", `The tools of ${path} can't be used: ${problem}.`, { cause });
}
