/** Sessions: `everthread/session`. */
export {
  checkSessionConfig,
  type PersistenceOptions,
  parseSessionConfig,
  readSessionConfig,
  type SessionBackend,
  type SessionConfig,
} from "./config.ts";
export { type DetectedStore, detectStore } from "./detect.ts";
export * from "./errors.ts";
export { MEMORY_GUIDANCE, type MemoryTool, memoryTools } from "./memory-tools.ts";
export { type OwnerInfo, readOwner } from "./owner.ts";
export { openSessionReadOnly, readState, type SessionState } from "./read-state.ts";
export { readableMarkdown } from "./readable.ts";
export { openSession, SESSION_THREAD, Session, type SessionOptions } from "./session.ts";
