/** The commands on a real Postgres and a real MySQL: the same as on a file, read without writing, and no secret told. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openCheckpointer } from "../../src/open.ts";
import { type Database, type Server, servers } from "../migrate/servers.ts";
import { tempDir } from "../support/temp.ts";
import { everthread, type Outcome, outcome } from "./support.ts";

const SECRET = "s3cr:t/#?@%é";
const TOOLS = `
const parameters = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
export default [{ name: "look", description: "Looks.", parameters, execute: ({ name }) => "seen " + name }];
`;
/** What may be done with rows, and nothing with tables. */
const GRANTS: Record<string, (user: string, rights: string, database: string) => string> = {
  postgres: (user, rights) => `CREATE ROLE ${user} LOGIN PASSWORD '${SECRET}';
    GRANT ${rights} ON ALL TABLES IN SCHEMA public TO ${user}`,
  mysql: (user, rights, database) => `CREATE USER ${user} IDENTIFIED BY '${SECRET}';
GRANT ${rights} ON \`${database}\`.* TO ${user}`,
};
const REVOKES: Record<string, (user: string) => string> = {
  postgres: (user) => `DROP OWNED BY ${user}; DROP ROLE ${user}`,
  mysql: (user) => `DROP USER ${user}`,
};

/** A database with the tables, and a directory to run the commands in. */
async function world(server: Server) {
  const dir = tempDir(onTestFinished);
  writeFileSync(join(dir, "tools.mjs"), TOOLS);
  const db = await server.database();
  await db.run(server.schemaSql());
  const run = (...args: string[]) => everthread(args, { db: db.url, cwd: dir });
  return { dir, db, run };
}

/** The database's URL for a user who may do no more than `rights`. */
async function urlFor({ name }: Server, db: Database, rights: string): Promise<string> {
  const user = `everthread_${randomBytes(5).toString("hex")}`;
  await db.run(GRANTS[name]?.(user, rights, new URL(db.url).pathname.slice(1)) ?? "");
  onTestFinished(async () => {
    await db.run(REVOKES[name]?.(user) ?? "");
  });
  return withUser(db.url, user, SECRET);
}

function withUser(url: string, user: string, password: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${user}:${encodeURIComponent(password)}@${host}${pathname}`;
}

/** The one line of an error, in which no secret is. */
function errorOf({ code, stdout, stderr }: Outcome): string {
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).not.toMatch(/s3cr|%C3%A9/);
  expect(stderr).toMatch(/^error: [^\n]*\n$/);
  return stderr.slice("error: ".length, -1);
}

for (const server of servers) {
  describe.skipIf(server.missing)(`the command line on ${server.label}`, () => {
    test("chat, threads, show, fork, doctor", async () => {
      const { run } = await world(server);
      const said = await run("chat", "--thread", "me", "--model", "offline", "Remember: my favourite colour is teal.");
      expect(said).toMatchObject({ code: 0, stdout: "I will remember that your favourite colour is teal.\n" });
      const asked = await run(
        "chat",
        "--thread",
        "me",
        "--model",
        "offline",
        "What did I say my favourite colour was?",
      );
      expect(asked).toMatchObject({ code: 0, stdout: "You said teal.\n", stderr: "" });
      expect((await run("threads")).stdout).toMatch(/^me +4 messages +just now\n$/);
      expect((await run("show", "m", "--runs")).stdout).toContain("You said teal.");
      const forked = await run("fork", "me", "other", "--metadata", '{"why":"a test"}');
      expect(forked.code, forked.stderr).toBe(0);
      expect((await run("threads", "--prefix", "o", "--json")).records()).toMatchObject([
        { total: 1, threads: [{ thread_id: "other", message_count: 4, parent_thread_id: "me" }] },
      ]);
      expect(await run("doctor")).toMatchObject({ code: 0, stdout: "Sound: 2 threads, 8 messages.\n", stderr: "" });
    });

    test("a question is asked, listed and answered", async () => {
      const { run } = await world(server);
      const tools = ["--tools", "tools.mjs", "--model", "offline"];
      const asked = await run("chat", "--thread", "t", ...tools, 'call look {"name":"it"}');
      expect(asked.code).toBe(3);
      expect((await run("pending")).stdout).toContain("everthread respond t");
      expect((await run("respond", "t", ...tools, "--approve")).code).toBe(0);
      expect((await run("show", "t")).stdout).toContain("seen it");
      expect((await run("pending")).stderr).toBe("Nothing waits on an answer.\n");
    });

    test("export and import, from a file's store to the server and back", async () => {
      const { dir, run } = await world(server);
      const local = (...args: string[]) => everthread(args, { db: join(dir, "a.db"), cwd: dir });
      await local("chat", "--thread", "b\u{1f600} ä", "--model", "offline", "Remember: my cat is Tom.");
      await local("chat", "--thread", "B", "--model", "offline", "Hello");
      expect((await local("export", "--all", "-o", "a.jsonl")).code).toBe(0);
      expect(await run("import", "a.jsonl")).toMatchObject({ code: 0, stdout: "2 threads imported (4 messages).\n" });
      expect((await run("import", "a.jsonl")).stdout).toBe("Nothing changed: 2 threads there already.\n");
      const there = await local("export", "--all");
      const here = await run("export", "--all");
      const messages = (outcome: Outcome) => outcome.records().flatMap(({ message }) => (message ? [message] : []));
      expect(messages(here)).toHaveLength(4);
      expect(messages(here)).toEqual(messages(there));
    });

    test("copy, from a file's store to the server, again, and on to another file", async () => {
      const { dir, db } = await world(server);
      const local = (...args: string[]) => everthread(args, { cwd: dir });
      await local("chat", "--db", "a.db", "--thread", "t", "--tools", "tools.mjs", 'call look {"name":"it"}');
      const copied = "1 thread copied, 2 messages. What was copied was compared, and is the same.\n";
      expect(await local("copy", "a.db", db.url)).toMatchObject({ code: 0, stdout: copied });
      expect((await local("copy", "a.db", db.url)).stdout).toBe("Nothing changed: 1 thread there already.\n");
      const answered = await everthread(["respond", "t", "--tools", "tools.mjs", "--approve"], {
        db: db.url,
        cwd: dir,
      });
      expect(answered.code, answered.stderr).toBe(0);
      expect((await local("copy", db.url, "b.db")).stdout).toMatch(/^1 thread copied, 4 messages\. /);
      const secret = withUser(db.url, "x", SECRET);
      const same = await local("copy", secret, secret);
      expect(same.stdout + same.stderr).not.toMatch(/s3cr|%C3%A9/);
      const empty = await server.database();
      expect(errorOf(await local("copy", "a.db", empty.url))).toContain("`everthread migrate`");
    });

    test("backup is refused with the tool that does it", async () => {
      const { run } = await world(server);
      expect(errorOf(await run("backup", "copy.db"))).toMatch(/can't do backup: .*dump/);
    });

    test("a user without any right on tables but to read and write rows is enough for everything", async () => {
      const { db, dir } = await world(server);
      const url = await urlFor(server, db, "SELECT, INSERT, UPDATE, DELETE");
      const run = (...args: string[]) => everthread(args, { db: url, cwd: dir });
      const asked = await run("chat", "--thread", "t", "--tools", "tools.mjs", 'call look {"name":"it"}');
      expect(asked.code, asked.stderr).toBe(3);
      const answered = await run("respond", "t", "--tools", "tools.mjs", "--approve");
      expect(answered.code, answered.stderr).toBe(0);
      expect((await run("fork", "t", "f")).code).toBe(0);
      expect((await run("migrate", "--check")).code).toBe(0);
      await db.run("DROP TABLE cubepi_hitl_answers");
      await db.run("UPDATE cubepi_schema_version SET version = 4");
      expect(errorOf(await run("migrate", "--apply"))).toMatch(/denied/);
    });

    test("a user who may only read rows is enough for the commands that read", async () => {
      const { db, dir, run } = await world(server);
      await run("chat", "--thread", "t", "--model", "offline", "Hello");
      const url = await urlFor(server, db, "SELECT");
      const read = (...args: string[]) => everthread(args, { db: url, cwd: dir });
      for (const args of [["threads"], ["show", "t"], ["pending"], ["export", "--all"], ["doctor"], ["migrate"]]) {
        const { code, stderr } = await read(...args);
        expect(code, `${args}: ${stderr}`).toBe(0);
      }
      expect(errorOf(await read("fork", "t", "f"))).toMatch(/denied/);
      expect(errorOf(await everthread(["copy", url, db.url], { cwd: dir }))).toContain("are one store");
    });

    test("what is wrong with the server is one sentence, without the password; so it is under --json", async () => {
      const { db, run } = await world(server);
      const { host, protocol } = new URL(db.url);
      const silent = createServer((socket) => socket.destroy());
      await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void silent.close());
      const address = silent.address();
      const port = typeof address === "object" ? address?.port : 0;
      const wrong: [string, RegExp][] = [
        [withUser(db.url, "everthread_nobody", SECRET), /everthread_nobody/],
        [withUser(db.url, "everthread_nobody", SECRET).replace(host, "no-such-host.invalid"), /no-such-host\.invalid/],
        [withUser(db.url, "x", SECRET).replace(host, "127.0.0.1:1"), /127\.0\.0\.1:1/],
        [withUser(db.url, "x", SECRET).replace(host, `127.0.0.1:${port}`), /connection|closed|ECONNRESET/i],
        [`${protocol}//x:${SECRET}@${host}/db`, /URL/],
        [`${protocol}//x:y@${host}/db?${SECRET}@h`, /%3F, %23 and %40/],
        [`${protocol.slice(0, -1)}//x:${SECRET.replaceAll("/", "")}@h/db`, /looks like a URL/],
        [`${protocol}//x:${encodeURIComponent(SECRET)}@${host}/db?maxPoolSize=many`, /maxPoolSize/],
      ];
      for (const [url, problem] of wrong) {
        expect(errorOf(await everthread(["threads"], { db: url })), url).toMatch(problem);
        const json = await everthread(["threads", "--json", "--db", url]);
        expect(json.stderr).not.toMatch(/s3cr|%C3%A9/);
        expect(JSON.parse(json.stderr)).toMatchObject({ error: { message: expect.stringMatching(problem) } });
        const debug = await everthread(["threads"], { db: url, env: { DEBUG: "everthread" } });
        expect(debug.stderr).not.toMatch(/s3cr|%C3%A9/);
      }
      const help = await everthread(["--help"], { db: withUser(db.url, "x", SECRET) });
      expect(help.stdout).not.toMatch(/s3cr|%C3%A9/);
      await db.run("DROP TABLE cubepi_hitl_answers");
      expect(errorOf(await run("threads"))).toMatch(/cubepi_hitl_answers/);
    });

    test("without tables, or with older ones, the error names `everthread migrate`; nothing is made", async () => {
      const db = await server.database();
      const none = errorOf(await everthread(["fork", "t", "f"], { db: db.url }));
      expect(none).toMatch(/cubepi_threads.*`everthread migrate` prints the SQL/);
      expect(await db.catalog()).toEqual([]);
      await db.run(server.version1);
      const old = errorOf(await everthread(["threads"], { db: db.url }));
      expect(old).toMatch(/version 1;.* version 5\. `everthread migrate` prints the SQL/);
    });

    test("the command that is told to answer a question shows no password", async () => {
      const { db, dir } = await world(server);
      const url = await urlFor(server, db, "SELECT, INSERT, UPDATE, DELETE");
      const args = ["--db", url, "--thread", "t", "--tools", "tools.mjs", "--model", "offline"];
      const asked = await everthread(["chat", ...args, 'call look {"name":"it"}'], { cwd: dir });
      const pending = await everthread(["pending", "--db", url]);
      for (const { stdout, stderr } of [asked, pending]) {
        expect(stdout + stderr).toMatch(/--db '\w+:\/\/everthread_\w+:\*\*\*@/);
        expect(stdout + stderr).not.toMatch(/s3cr|%C3%A9/);
      }
    });

    test("a missing driver says what to install", async () => {
      const driver = server.name === "postgres" ? "pg" : "mysql2";
      // The package as it is installed without optional peers.
      const dir = tempDir(onTestFinished);
      for (const part of ["bin", "dist", "package.json"]) cpSync(part, join(dir, part), { recursive: true });
      const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
      for (const name of Object.keys(dependencies)) {
        mkdirSync(dirname(join(dir, "node_modules", name)), { recursive: true });
        symlinkSync(resolve("node_modules", name), join(dir, "node_modules", name));
      }
      const url = `${server.name}://u:${encodeURIComponent(SECRET)}@localhost/db`;
      const child = spawn(process.execPath, [join(dir, "bin/everthread.js"), "threads", "--db", url]);
      expect(errorOf(await outcome(child))).toMatch(new RegExp(`npm install ${driver}$`));
    });

    test("opened to read, a store refuses every write, and closes", async () => {
      const { db } = await world(server);
      const store = await openCheckpointer(db.url, { readOnly: true });
      await expect(store.append("t", [])).rejects.toMatchObject({ code: "store_read_only" });
      await expect(store.deleteThread("t")).rejects.toMatchObject({ code: "store_read_only" });
      expect(await store.load("t")).toBeUndefined();
      expect(store.capabilities.backend).toBe(server.name);
      await store.close();
      await expect(store.load("t")).rejects.toMatchObject({ code: "store_closed" });
    });

    test("the query of the URL holds the engine's own options", async () => {
      const db = await server.database();
      const url = `${db.url}?tablePrefix=talk_&maxPoolSize=2&minPoolSize=0&connectTimeoutMs=5000&lockTimeoutMs=500`;
      await db.run(server.schemaSql().replaceAll("cubepi_", "talk_"));
      await using store = await openCheckpointer(url);
      await store.saveExtra("t", { a: 1 });
      expect(await db.run("SELECT thread_id FROM talk_threads")).toEqual([{ thread_id: "t" }]);
      await expect(openCheckpointer(`${db.url}?tablePrefix=a-b`)).rejects.toThrow(/tablePrefix/);
    });
  });
}
