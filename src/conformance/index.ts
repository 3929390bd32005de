/**
 * The conformance suite: what every backend must do, as cases that any test runner can run.
 *
 * For each of {@link conformanceCases}: skip it with the reason that {@link missingCapability} gives, if any; else await
 * `run(make)`, where `make` opens a new, empty store.
 */
import { appendCases } from "./append.ts";
import { archiveDoorCases } from "./archive-doors.ts";
import { archiveFetchCases } from "./archive-fetch.ts";
import { archiveForkCases } from "./archive-forks.ts";
import { archiveImportCases } from "./archive-import.ts";
import { archiveLifeCases } from "./archive-life.ts";
import { archiveQueryCases } from "./archive-queries.ts";
import { archiveRetentionCases } from "./archive-retention.ts";
import { archiveScopeCases } from "./archive-scope.ts";
import { archiveSearchCases } from "./archive-search.ts";
import { archiveCases } from "./archives.ts";
import type { ConformanceCase } from "./case.ts";
import { damageCases } from "./damage.ts";
import { forkCases } from "./forks.ts";
import { idCases } from "./ids.ts";
import { importCases } from "./import.ts";
import { lifecycleCases } from "./lifecycle.ts";
import { listingCases } from "./listing.ts";
import { loadCases } from "./load.ts";
import { pendingCases } from "./pending.ts";
import { runCases } from "./runs.ts";
import { structureCases } from "./structure.ts";
import { valueCases } from "./values.ts";

export { type ConformanceCase, type ConformanceStore, type MakeStore, missingCapability, type Need } from "./case.ts";
export {
  type HistoryConformanceCase,
  type HistoryConformanceStore,
  type HistoryNeed,
  historyCases,
  type MakeHistory,
  missingHistoryCapability,
} from "./history.ts";

export const conformanceCases: readonly ConformanceCase[] = [
  ...appendCases,
  ...loadCases,
  ...runCases,
  ...forkCases,
  ...importCases,
  ...pendingCases,
  ...structureCases,
  ...valueCases,
  ...idCases,
  ...listingCases,
  ...damageCases,
  ...lifecycleCases,
  ...archiveCases,
  ...archiveDoorCases,
  ...archiveLifeCases,
  ...archiveRetentionCases,
  ...archiveForkCases,
  ...archiveImportCases,
  ...archiveQueryCases,
  ...archiveSearchCases,
  ...archiveScopeCases,
  ...archiveFetchCases,
];
