/** The conformance suite of memory histories: for each case, skip it with the reason that is given, if any; else run it. */
import type { HistoryConformanceCase } from "./history-case.ts";
import { historyLogCases } from "./history-log.ts";
import { historyWindowCases } from "./history-window.ts";

export {
  type HistoryConformanceCase,
  type HistoryConformanceStore,
  type HistoryNeed,
  type MakeHistory,
  missingHistoryCapability,
} from "./history-case.ts";

export const historyCases: readonly HistoryConformanceCase[] = [...historyLogCases, ...historyWindowCases];
