/**
 * Starts a Postgres for the whole run when the first test asks for one, or uses the one of POSTGRES_URL. A run without
 * such a test starts none: what is set up is only a door at which the tests, which run in other processes, ask.
 */
import { createServer } from "node:http";
import { makeTemplate, type PostgresServer, sql, startPostgres } from "../support/postgres.ts";

export default async function setup(): Promise<() => Promise<void>> {
  let own: PostgresServer | undefined;
  let ready: Promise<{ url: string; template: string }> | undefined;
  const start = async () => {
    own = process.env.POSTGRES_URL ? undefined : await startPostgres();
    const url = own?.url ?? process.env.POSTGRES_URL ?? "";
    return { url, template: await makeTemplate(url) };
  };
  const door = createServer((_request, response) => {
    ready ??= start();
    ready.then(
      (found) => response.end(JSON.stringify(found)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
  const address = door.address();
  if (typeof address === "object" && address) process.env.EVERTHREAD_TEST_POSTGRES = `http://127.0.0.1:${address.port}`;
  return async () => {
    door.closeAllConnections();
    door.close();
    const found = await ready?.catch(() => undefined);
    if (own) await own.dispose();
    else if (found) await sql(found.url, `DROP DATABASE ${found.template} WITH (FORCE)`);
  };
}
