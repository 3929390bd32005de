/**
 * The vocabulary, the contracts, the agent and the errors. Loads no database driver and no provider: engines are reached
 * by subpath, such as `everthread/sqlite`.
 */
export { Agent, type AgentOptions, type CompactNowOptions, type PromptOptions } from "./agent/agent.ts";
export {
  type ApprovalAnswer,
  type ApprovalContext,
  type ApprovalPolicy,
  type Decision,
  deny,
} from "./agent/approvals.ts";
export { askUserTool } from "./agent/ask-user.ts";
export type { CompactionOptions } from "./agent/compaction.ts";
export * from "./agent/errors.ts";
export type { AgentEvent, AgentResult, Ending } from "./agent/events.ts";
export type { HookContext, Middleware } from "./agent/middleware.ts";
export type { Prompt } from "./agent/prompt.ts";
export { type ExtractionInput, type FoundFact, type RememberOptions, remember } from "./agent/remember.ts";
export type { OnPending } from "./agent/run.ts";
export type { AgentStream } from "./agent/stream.ts";
export { defineTool, type Tool, type ToolContext, type ToolOutput } from "./agent/tools.ts";
export * from "./checkpoint/archive-rules.ts";
export type * from "./checkpoint/archives.ts";
export type * from "./checkpoint/checkpointer.ts";
export * from "./checkpoint/errors.ts";
export { checkLimit, checkRevision, checkText } from "./checkpoint/page.ts";
export { type AdmittedPart, admitCompaction, admitPart } from "./checkpoint/part.ts";
export {
  admitPending,
  checkPending,
  type PendingPayload,
  type PendingRequest,
  type Question,
  type QuestionOption,
} from "./checkpoint/pending.ts";
export * from "./checkpoint/search.ts";
export { type CopyOptions, type CopyProblem, type CopyReport, copyThreads } from "./copy/copy.ts";
export { EverthreadError, InvalidArgumentError, InvalidIdError } from "./errors.ts";
export { DuplicateRecordError, InvalidRecordError } from "./history/errors.ts";
export type * from "./history/history.ts";
export { admitMessage, admitMessages, checkStored } from "./messages/admit.ts";
export { messageFromJson, messageFromMsgpack, messageToJson, messageToMsgpack } from "./messages/codec.ts";
export * from "./messages/construct.ts";
export { InvalidMessageError } from "./messages/errors.ts";
export { copyJson, copyJsonObject, type JsonObject, type JsonValue, sameJson } from "./messages/json.ts";
export { danglingCalls, type PairedCall, type Pairing, pairToolCalls } from "./messages/pairing.ts";
export type * from "./messages/schema.ts";
export { isSigned, withoutSignatures } from "./messages/signatures.ts";
export { type ThreadState, threadState } from "./messages/state.ts";
export { summaryMessage } from "./messages/summary.ts";
export { type Finding, type ModelView, modelView } from "./messages/view.ts";
export * from "./model/errors.ts";
export type { Model, ModelEvent, ModelRequest, ToolSpec } from "./model/model.ts";
export { OfflineModel } from "./model/offline.ts";
export type { RetryPolicy } from "./model/retry.ts";
export { type ScriptedAnswer, ScriptedModel } from "./model/scripted.ts";
export { type OpenOptions, openCheckpointer } from "./open.ts";
export {
  checkId,
  checkNewRunId,
  checkOptionalRunId,
  checkQuestionId,
  checkRunId,
  checkThreadId,
  compareCodePoints,
  newId,
} from "./util/ids.ts";
