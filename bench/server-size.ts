/**
 * Bytes that a server needs for messages: tables and indexes, and on MariaDB also files. Run by itself, with how many
 * messages: `node bench/server-size.ts 100000`. It starts servers of its own. The figures are in docs/scaling.md.
 */
import { randomBytes } from "node:crypto";
import { userMessage } from "../src/messages/construct.ts";
import type { Message } from "../src/messages/schema.ts";
import { migrateStore, openCheckpointer } from "../src/open.ts";
import { newId } from "../src/util/ids.ts";
import { OwnServer, testDatabase } from "../test/support/mysql.ts";
import { sql, startPostgres } from "../test/support/postgres.ts";

const MESSAGES = Number(process.argv[2] ?? 100_000);
const BYTES = 500;
/** Of a thread, and of a run. */
const THREAD = 200;
const RUN = 8;
const WRITERS = 10;

function message(runId: string): Message {
  const about = { run_id: runId, timestamp: 1_700_000_000.5 };
  const room = BYTES - JSON.stringify(userMessage("", about)).length;
  return userMessage(
    randomBytes(Math.ceil(room / 2))
      .toString("hex")
      .slice(0, room),
    about,
  );
}

async function fill(url: string): Promise<void> {
  await migrateStore(url, { apply: true });
  await using store = await openCheckpointer(url);
  let left = MESSAGES / THREAD;
  const write = async () => {
    while (left-- > 0) {
      const threadId = newId();
      for (let first = 0; first < THREAD; first += RUN) {
        const runId = newId();
        await store.claimRun(threadId, runId);
        await store.append(
          threadId,
          Array.from({ length: RUN }, () => message(runId)),
        );
        await store.markRunComplete(threadId, runId);
      }
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
}

const postgres = await startPostgres();
await fill(postgres.url);
await sql(postgres.url, "VACUUM ANALYZE");
console.table(
  await sql(
    postgres.url,
    `SELECT regexp_replace(relname, '_p\\d\\d$', '') AS name, sum(pg_table_size(oid)) AS table, sum(pg_indexes_size(oid)) AS indexes
      FROM pg_class WHERE relkind = 'r' AND relname LIKE 'cubepi%' GROUP BY 1 ORDER BY 1`,
  ),
);
await postgres.dispose();

await using mysql = new OwnServer(["--innodb-file-per-table=1"]);
await mysql.start();
await using database = await testDatabase({ server: mysql.url, tables: false });
await fill(database.url);
await database.sql("ANALYZE TABLE cubepi_messages, cubepi_runs, cubepi_threads");
console.table(
  await database.sql(
    "SELECT table_name AS name, data_length AS data, index_length AS indexes FROM information_schema.tables WHERE table_schema = DATABASE()",
  ),
);
console.table(
  await database.sql(
    "SELECT SUM(file_size) AS files FROM information_schema.innodb_sys_tablespaces WHERE name LIKE 'everthread%'",
  ),
);
