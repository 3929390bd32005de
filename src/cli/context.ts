/** What every command gets besides its own arguments and options. */
import type { Terminal } from "./terminal.ts";

export interface Context {
  out: Terminal;
  /** As given by --db; otherwise EVERTHREAD_DB names the store. */
  db: string | undefined;
  /** As given by --session: the directory of a session. */
  session?: string | undefined;
  /** As given by --config: the YAML file that configures a session. */
  config?: string | undefined;
}
