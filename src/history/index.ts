/** `everthread/history`: the contract of a memory history, its errors and its engines. */
export * from "./errors.ts";
export type * from "./history.ts";
export { InMemoryHistory } from "./memory/history.ts";
export { type Migration, SqliteMemoryHistory, type SqliteOptions } from "./sqlite/history.ts";
export { readMem0File } from "./sqlite/mem0-file.ts";
export { exportLines, type HistoryContent, importContent, parseLines } from "./transfer.ts";
