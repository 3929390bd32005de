/** Tools: what a model may call. Arguments are described by any Standard Schema, or by plain JSON Schema. */
import type { Schema } from "@cfworker/json-schema";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { messageOf } from "../errors.ts";
import { text, toolResultMessage } from "../messages/construct.ts";
import { copyJson, copyJsonObject, isJsonObject, type JsonObject, type JsonValue } from "../messages/json.ts";
import type { ToolCallBlock, ToolResultMessage, UserBlock } from "../messages/schema.ts";
import type { ToolSpec } from "../model/model.ts";

/** How long a tool may take to end by itself once its signal has fired, in ms. */
const TOOL_GRACE_MS = 250;

export interface ToolContext {
  /** Undefined when the agent keeps nothing. */
  threadId: string | undefined;
  /** With threadId and toolCallId a key under which a repeated call can be recognised. */
  runId: string;
  toolCallId: string;
  /** Fires when the run is aborted: stop early. */
  signal: AbortSignal;
  /** The thread's JSON state; what is changed here is saved after the turn. */
  extra: JsonObject;
  /** Reports progress, as a `tool_update` event. Nothing of it is stored. */
  update(progress: unknown): void;
}

/**
 * What a tool may give: text, blocks with details for programs, or any JSON, which the model gets as JSON text. An object
 * with other keys than those of the second form is JSON, also when it has `content`.
 */
export type ToolOutput =
  | string
  | { content: string | UserBlock[]; details?: JsonValue; is_error?: boolean }
  | JsonValue
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: a tool that returns nothing is a tool that says nothing
  | void;

export interface Tool<Args = unknown> {
  name: string;
  /** What the model is told of it. */
  description: string;
  /** The schema of the arguments: zod, valibot, arktype (Standard Schema), or plain JSON Schema of an object. */
  parameters: StandardSchemaV1<unknown, Args> | JsonObject;
  /** The JSON Schema that the model is given, for a Standard Schema that can't write its own. (Default: from `parameters`) */
  inputSchema?: JsonObject;
  /**
   * Does the work. What it throws becomes an error result that the model reads. After an interruption it is never run
   * again by itself, but a person may have it run again.
   */
  execute(args: Args, context: ToolContext): ToolOutput | Promise<ToolOutput>;
}

/** Types the arguments of `execute` by the schema. Does nothing else. */
export function defineTool<Schema extends StandardSchemaV1>(
  tool: Omit<Tool<StandardSchemaV1.InferOutput<Schema>>, "parameters"> & { parameters: Schema },
): Tool;
export function defineTool(tool: Tool<JsonObject> & { parameters: JsonObject }): Tool;
export function defineTool(tool: unknown): Tool {
  return tool as Tool;
}

/** The tools by name. @throws TypeError for a name used twice, or a schema that a model can't be given */
export function indexTools(tools: readonly Tool[]): Map<string, Tool> {
  const index = new Map<string, Tool>();
  for (const tool of tools) {
    if (typeof tool?.name !== "string" || tool.name === "" || typeof tool.execute !== "function") {
      throw new TypeError("A tool needs a name and an execute function.");
    }
    if (index.has(tool.name)) throw new TypeError(`Two tools are called ${JSON.stringify(tool.name)}. Rename one.`);
    index.set(tool.name, tool);
    toolSpec(tool);
  }
  return index;
}

/** A tool as a model is told of it. @throws TypeError when its schema can't be written as JSON Schema */
export function toolSpec(tool: Tool): ToolSpec {
  return { name: tool.name, description: tool.description, inputSchema: inputSchemaOf(tool) };
}

function inputSchemaOf(tool: Tool): JsonObject {
  if (tool.inputSchema) return tool.inputSchema;
  const { parameters } = tool;
  if (!isStandardSchema(parameters)) {
    if (!isJsonObject(parameters)) {
      throw new TypeError(
        `Tool ${JSON.stringify(tool.name)} needs parameters: a Standard Schema or a JSON Schema object.`,
      );
    }
    return parameters;
  }
  const { jsonSchema } = parameters["~standard"] as Partial<StandardJSONSchemaV1.Props>;
  if (!jsonSchema) {
    throw new TypeError(
      `The schema of tool ${JSON.stringify(tool.name)} (${parameters["~standard"].vendor}) can't write JSON Schema. Give the tool an inputSchema, or wrap the schema (valibot: toStandardJsonSchema).`,
    );
  }
  return jsonSchema.input({ target: "draft-07" }) as JsonObject;
}

// arktype's schemas are functions, zod's are objects.
function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  return (typeof value === "object" || typeof value === "function") && value !== null && "~standard" in value;
}

/**
 * Checks arguments against the tool's schema: the value to run with, or what is wrong, in words for the model. The value
 * is the tool's own: what it does to it changes no record of what was called.
 */
export async function checkArguments(
  tool: Tool,
  args: JsonObject,
): Promise<{ value: unknown; problem?: never } | { problem: string }> {
  const { parameters } = tool;
  try {
    const copy = copyJsonObject(args, "arguments");
    if (isStandardSchema(parameters)) {
      const result = await parameters["~standard"].validate(copy);
      if (!result.issues) return { value: result.value };
      return { problem: result.issues.map(describeIssue).join("; ") };
    }
    const { Validator } = await import("@cfworker/json-schema");
    const { valid, errors } = new Validator(parameters as Schema, "2020-12", false).validate(copy);
    if (valid) return { value: copy };
    return { problem: errors.map((error) => `${error.instanceLocation}: ${error.error}`).join("; ") };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function describeIssue(issue: StandardSchemaV1.Issue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

/** Runs a tool; whatever comes of it is a result message, never a throw. */
export async function executeTool(
  tool: Tool,
  call: ToolCallBlock,
  args: unknown,
  context: ToolContext,
): Promise<ToolResultMessage> {
  try {
    return outputMessage(call, await tool.execute(args, context));
  } catch (error) {
    return errorResult(call, messageOf(error));
  }
}

/** Waits for a tool; once its signal has fired, only a moment longer: a tool that doesn't listen must not hold the run. */
export async function untilStopped(
  running: Promise<ToolResultMessage>,
  call: ToolCallBlock,
  signal: AbortSignal,
): Promise<ToolResultMessage> {
  const stopped = Promise.withResolvers<ToolResultMessage>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => {
      stopped.resolve(errorResult(call, "The run was stopped while this tool was working; its outcome is unknown."));
    }, TOOL_GRACE_MS);
  };
  signal.addEventListener("abort", onAbort);
  // The tool may have stopped the run before its first wait.
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([running, stopped.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  }
}

function outputMessage(call: ToolCallBlock, output: unknown): ToolResultMessage {
  if (output === undefined || output === null) return toolResultMessage(call, []);
  if (typeof output === "string") return toolResultMessage(call, output);
  // The copy refuses what is not JSON here, where the model can be told, rather than when the message is written.
  const copy = copyJson(output, "result");
  if (isMessageForm(copy)) {
    const { content, details = null, is_error = false } = copy;
    return toolResultMessage(call, content, { details, is_error: is_error === true });
  }
  return toolResultMessage(call, JSON.stringify(copy), { details: copy });
}

function isMessageForm(value: JsonValue): value is JsonObject & { content: string | UserBlock[] } {
  if (!isJsonObject(value)) return false;
  const { content, details: _details, is_error: _isError, ...others } = value;
  return Object.keys(others).length === 0 && (typeof content === "string" || Array.isArray(content));
}

/** An error result, in words for the model. */
export function errorResult(
  call: ToolCallBlock,
  problem: string,
  details: JsonObject | null = null,
): ToolResultMessage {
  return toolResultMessage(call, [text(problem)], { is_error: true, details });
}

/** Adds what was decided about a call to its result's details, in CubeLoop's form. */
export function withDecision(result: ToolResultMessage, decision: JsonObject | undefined): ToolResultMessage {
  if (!decision) return result;
  const { details = null } = result;
  if (details === null) return { ...result, details: { hitl: decision } };
  if (isJsonObject(details)) return { ...result, details: { ...copyJsonObject(details, "details"), hitl: decision } };
  return { ...result, details: { _non_dict_details: details, hitl: decision } };
}
