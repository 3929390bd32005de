/** Names the place where the MySQL server of this run will be, and ends that server if a test has started it. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopServer } from "../support/mysql-server.ts";

export default function setup(): () => Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "everthread-mysql-"));
  // The server may run as another user, who has to get through to it.
  chmodSync(directory, 0o755);
  process.env.EVERTHREAD_TEST_MYSQL = directory;
  return async () => {
    await stopServer(join(directory, "shared"));
    rmSync(directory, { recursive: true, force: true });
  };
}
