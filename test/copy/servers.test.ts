/** Copies between stores of servers: only the server knows whether two of them are one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { MySQLCheckpointer } from "../../src/checkpoint/mysql/checkpointer.ts";
import { migrate as migrateMysql } from "../../src/checkpoint/mysql/migrate.ts";
import { migrate, PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { readOnlyView } from "../../src/checkpoint/read-only.ts";
import { copyThreads } from "../../src/copy/copy.ts";
import { userMessage } from "../../src/messages/construct.ts";
import { hasMysql, mysqlLabel, testDatabase } from "../support/mysql.ts";
import { databaseUrl, makeDatabase, sql } from "../support/postgres.ts";
import { TcpProxy } from "../support/proxy.ts";

interface Database {
  url: string;
  /** The URL for a user who may read rows, and nothing else. */
  reader: string;
  drop(): Promise<unknown>;
}

interface Engine {
  database(): Promise<Database>;
  open(url: string, options?: { tablePrefix?: string }): Promise<Checkpointer>;
  migrate(url: string, options: { tablePrefix: string }): Promise<unknown>;
}

function withUser(url: string, user: string, password: string): string {
  const changed = new URL(url);
  changed.username = user;
  changed.password = password;
  return changed.href;
}

const postgres: Engine = {
  async database() {
    const made = await makeDatabase();
    const role = new URL(made.url).pathname.slice(1).replace("test", "reader");
    await sql(
      made.url,
      `CREATE ROLE ${role} LOGIN PASSWORD 'pw'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`,
    );
    const drop = async () => {
      await made.drop();
      await sql(databaseUrl(made.url, "postgres"), `DROP ROLE ${role}`);
    };
    return { url: made.url, reader: withUser(made.url, role, "pw"), drop };
  },
  open: (url, options) => PostgresCheckpointer.open(url, { ...options, maxPoolSize: 1 }),
  migrate: (url, options) => migrate(url, options),
};

const mysql: Engine = {
  async database() {
    const made = await testDatabase();
    const user = made.name.replace("everthread", "reader");
    await made.sql(`CREATE USER '${user}'@'%' IDENTIFIED BY 'pw'`);
    await made.sql(`GRANT SELECT ON \`${made.name}\`.* TO '${user}'@'%'`);
    const drop = async () => {
      await made.sql(`DROP USER '${user}'@'%'`);
      await made[Symbol.asyncDispose]();
    };
    return { url: made.url, reader: withUser(made.url, user, "pw"), drop };
  },
  open: (url, options) => MySQLCheckpointer.open(url, { ...options, maxPoolSize: 1 }),
  migrate: (url, options) => migrateMysql(url, options),
};

describe.each([
  ["Postgres", postgres, true],
  [`MySQL (${mysqlLabel})`, mysql, hasMysql],
] as const)("%s", (_name, engine, there) => {
  describe.skipIf(!there)("one store or two", () => {
    let one: Database;
    let two: Database;
    beforeAll(async () => {
      [one, two] = [await engine.database(), await engine.database()];
      await using store = await engine.open(one.url);
      await store.append("t", [userMessage("here")]);
    });
    afterAll(async () => {
      await one.drop();
      await two.drop();
    });
    const refused = { code: "invalid_argument", message: /are one store/ };

    test("a store under another URL, by another road and another user is the same: refused before anything is written", async () => {
      await using proxy = await TcpProxy.before(one.url);
      await using from = readOnlyView(await engine.open(one.reader));
      await using to = await engine.open(proxy.url(one.url));
      const before = await to.listThreads();
      await expect(copyThreads(from, to)).rejects.toMatchObject(refused);
      await expect(copyThreads(to, from)).rejects.toMatchObject(refused);
      expect(await to.listThreads()).toEqual(before);
    });

    test("another database of the server is another store, and so are tables of another prefix", async () => {
      await using from = await engine.open(one.url);
      await using to = await engine.open(two.url);
      expect(await copyThreads(from, to)).toMatchObject({ copied: 1, messages: 1 });
      await engine.migrate(two.url, { tablePrefix: "other_" });
      await using prefixed = await engine.open(two.url, { tablePrefix: "other_" });
      expect(await copyThreads(to, prefixed)).toMatchObject({ copied: 1, messages: 1 });
      expect(await copyThreads(to, prefixed)).toMatchObject({ copied: 0, unchanged: 1 });
    });

    test("a closed store says so", async () => {
      const from = await engine.open(one.url);
      await using to = await engine.open(two.url);
      await from.close();
      await expect(copyThreads(from, to)).rejects.toMatchObject({ code: "store_closed" });
      await expect(copyThreads(to, from)).rejects.toMatchObject({ code: "store_closed" });
    });
  });
});

test.skipIf(!hasMysql)("a store of another engine is another one", async () => {
  await using database = await testDatabase();
  const made = await makeDatabase();
  const from = await PostgresCheckpointer.open(made.url);
  await using to = await MySQLCheckpointer.open(database.url);
  await from.append("t", [userMessage("here")]);
  expect(await copyThreads(from, to)).toMatchObject({ copied: 1 });
  await from.close();
  await made.drop();
});
