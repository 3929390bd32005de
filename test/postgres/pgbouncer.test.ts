/** Behind a real pgbouncer that pools transactions: no session is the same for long, and nothing depends on one. */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { migrate, PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { textOf, userMessage } from "../../src/messages/construct.ts";
import { makeDatabase, sql } from "../support/postgres.ts";
import { tempDir } from "../support/temp.ts";

const PGBOUNCER = find();
const { url, drop } = await makeDatabase();
afterAll(drop);

function find(): string | undefined {
  for (const path of ["pgbouncer", "/usr/sbin/pgbouncer"]) {
    try {
      execFileSync(path, ["--version"]);
      return path;
    } catch {
      // Not there.
    }
  }
  return undefined;
}

/** Starts pgbouncer before the test's database, with two connections of its own to the server. */
async function startBouncer(path: string): Promise<string> {
  const dir = tempDir();
  chmodSync(dir, 0o755);
  const target = new URL(url);
  const port = await new Promise<number>((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
  writeFileSync(join(dir, "users.txt"), `"${target.username}" "${target.password}"\n`);
  const upstream = `host=${target.hostname} port=${target.port} dbname=${target.pathname.slice(1)}`;
  const settings = [
    "[databases]",
    `pooled = ${upstream} user=${target.username} password=${target.password}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = plain",
    `auth_file = ${join(dir, "users.txt")}`,
    "pool_mode = transaction",
    "default_pool_size = 2",
    "ignore_startup_parameters = extra_float_digits",
  ];
  writeFileSync(join(dir, "pgbouncer.ini"), settings.join("\n"));
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn(path, [...user, join(dir, "pgbouncer.ini")], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes("process up")) resolve();
    });
    child.once("exit", () => reject(new Error(log)));
  });
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        child.removeAllListeners("exit");
        child.once("exit", () => resolve());
        child.kill("SIGINT");
        child.kill("SIGTERM");
      }),
  );
  const pooled = new URL(url);
  pooled.hostname = "127.0.0.1";
  pooled.port = String(port);
  pooled.pathname = "/pooled";
  return pooled.href;
}

test("P4 twelve writers on three threads through pgbouncer: nothing lost, no lock left behind, no statement named", async ({
  skip,
}) => {
  if (PGBOUNCER === undefined) return skip("no pgbouncer on the PATH (Debian: apt-get install pgbouncer)");
  const pooled = await startBouncer(PGBOUNCER);
  const stores = await Promise.all(
    Array.from({ length: 12 }, () => PostgresCheckpointer.open(pooled, { maxPoolSize: 2, minPoolSize: 0 })),
  );
  await Promise.all(
    stores.map(async (store, i) => {
      const thread = `t${i % 3}`;
      await store.claimRun(thread, `run ${i}`);
      for (let n = 0; n < 10; n++) await store.append(thread, [userMessage(`w${i} ${n}`, { run_id: `run ${i}` })]);
      await store.markRunComplete(thread, `run ${i}`);
      await store.saveExtra(thread, { [`w${i}`]: true });
      await store.load(thread);
    }),
  );
  const [store] = stores;
  for (let t = 0; t < 3; t++) {
    const loaded = await store?.load(`t${t}`);
    const texts = (loaded?.messages ?? []).map(textOf);
    expect(texts).toHaveLength(40);
    for (let i = t; i < 12; i += 3) {
      const own = texts.filter((text) => text.startsWith(`w${i} `));
      expect(own).toEqual(Array.from({ length: 10 }, (_, n) => `w${i} ${n}`));
    }
    expect(Object.keys(loaded?.extra ?? {})).toHaveLength(4);
  }
  const conflict = store?.append("t0", [userMessage("stale")], { expectedRevision: 1 });
  await expect(conflict).rejects.toMatchObject({ code: "thread_conflict" });
  expect(await sql(pooled, "SELECT name FROM pg_prepared_statements")).toEqual([]);
  const locks =
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = $1)";
  expect(await sql(url, locks, [new URL(url).pathname.slice(1)])).toEqual([]);
  await Promise.all(stores.map((each) => each.close()));
});

test.skipIf(!PGBOUNCER)(
  "L13 migrations through pgbouncer, four at once: one does it, the others find it done",
  async () => {
    const through = await startBouncer(PGBOUNCER ?? "");
    await sql(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    const done = await Promise.all(Array.from({ length: 4 }, () => migrate(through)));
    expect(done.map(({ from }) => from).sort()).toEqual([0, 5, 5, 5]);
    await (await PostgresCheckpointer.open(through)).close();
  },
);
