/** The engines on servers, as far as there are servers here; each has one database, which is emptied after each use. */
import { hasMysql, testDatabase } from "../support/mysql.ts";
import { makeDatabase, sql } from "../support/postgres.ts";
import { type Engine, mysql, postgres } from "./stores.ts";

export async function servers(): Promise<{ engines: Engine[]; dispose(): Promise<void> }> {
  const database = await makeDatabase();
  const server = hasMysql ? await testDatabase() : undefined;
  return {
    engines: [
      postgres(database.url, () => sql(database.url, "DELETE FROM cubepi_threads")),
      ...(server ? [mysql(server.url, () => server.empty())] : []),
    ],
    async dispose() {
      await database.drop();
      await server?.[Symbol.asyncDispose]();
    },
  };
}
