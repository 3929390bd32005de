/** Archives, search and sessions on the command line, as real processes on the built program. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, userMessage } from "../../src/messages/construct.ts";
import { openSession } from "../../src/session/index.ts";
import { tempDir } from "../support/temp.ts";
import { everthread } from "./support.ts";

/** Two threads, each with something set aside, and with an escape sequence in it. */
async function store() {
  const db = join(tempDir(), "a.db");
  await using checkpointer = await SqliteCheckpointer.open(db);
  for (const id of ["cats", "dogs"]) {
    const said = [
      userMessage(`The ${id} like \u001b[31mtuna 100%_\u202e.`),
      assistantMessage(`Noted about the ${id}.`),
    ];
    await checkpointer.append(id, [...said, userMessage("And now?"), assistantMessage("Now this.")]);
    const { items } = await checkpointer.listMessages(id);
    const upTo = items[1]?.position ?? 0;
    await checkpointer.archives.compact(id, { upTo, summary: `About ${id}.\u001b[2J`, system: "Be kind." });
  }
  return db;
}

describe("search", () => {
  test("finds what was archived, in one thread or in all, newest first, and shows nothing that a terminal would obey", async () => {
    const db = await store();
    const all = await everthread(["search", "LIKE"], { db });
    expect(all.stdout.match(/^user (dogs|cats)/gm)).toEqual(["user dogs", "user cats"]);
    expect(all.stdout).toContain("␛[31mtuna 100%_<U+202E>.");
    expect(all.stdout).not.toMatch(/[\u001b\u202e]/);
    const [one] = (await everthread(["search", "like", "--thread", "cats", "--json"], { db })).records();
    expect(one).toMatchObject({ hits: [{ thread_id: "cats", archive_id: "a1", role: "user" }], has_more: false });
    const limited = await everthread(["search", "o", "--limit", "1", "--json"], { db });
    expect(limited.records()).toMatchObject([{ hits: [{ thread_id: "dogs" }], has_more: true }]);
    expect(await everthread(["search", "And now?"], { db })).toMatchObject({ code: 0, stdout: "" });
  });

  test("S4 S5 L30 any text is literal, also on the command line", async () => {
    const db = await store();
    for (const text of ['"', "%%%", "100%_", "*", "(", "NEAR(a b)", "-foo", "x') OR 1=1 --", "\\", "🐈"]) {
      const { code, stderr, stdout } = await everthread(["search", "--json", "--", text], { db });
      expect({ text, code, stderr }).toEqual({ text, code: 0, stderr: "" });
      expect(JSON.parse(stdout).hits).toHaveLength(text === "100%_" ? 2 : 0);
    }
  });

  test("says where it can't search, and which thread is not there", async () => {
    const json = await everthread(["search", "x", "--db", "memory:", "--thread", "none"]);
    expect(json).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no thread") });
    const directory = join(tempDir(), "session");
    await (await openSession({ directory, backend: "json" })).close();
    const refused = await everthread(["search", "x", "--session", directory]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^error: The json backend can't do a search: .+\n$/);
  });
});

describe("archives", () => {
  test("are listed, shown whole and by source, and pruned", async () => {
    const db = await store();
    const list = await everthread(["archives", "cats"], { db });
    expect(list.stdout).toMatch(/^a1 2 messages · just now\n {2}About cats\.␛\[2J\n$/);
    expect((await everthread(["archives"], { db })).stderr).toContain("several threads");
    const shown = await everthread(["archive", "show", "a1", "cats"], { db });
    expect(shown.stdout).toContain("Be kind.");
    expect(shown.stdout).toContain("Noted about the cats.");
    expect(shown.stdout).not.toMatch(/[\u001b\u202e]/);
    const [whole] = (await everthread(["archive", "show", "a1", "cats", "--json"], { db })).records();
    expect(whole).toMatchObject({ archive_id: "a1", system: "Be kind.", previous_summary: null, messages: [{}, {}] });
    const [found] = (await everthread(["search", "Noted", "--thread", "cats", "--json"], { db })).records();
    const { source_id } = (found as { hits: { source_id: string }[] }).hits[0] ?? { source_id: "" };
    const source = await everthread(["archive", "show", "a1", "cats", "--source", source_id], { db });
    expect(source.stdout).toBe("Noted about the cats.\n");
    expect((await everthread(["archive", "show", "a9", "cats"], { db })).stderr).toMatch(
      /^error: .* has no archive "a9"/,
    );
    expect(await everthread(["prune", "cats", "--keep", "1"], { db })).toMatchObject({ code: 0 });
    expect((await everthread(["prune", "cats"], { db })).code).toBe(2);
    const conversation = await everthread(["show", "cats"], { db });
    expect(conversation.stdout).toMatch(/Noted about the cats.*compacted archive a1\n {2}About cats.*And now\?/s);
  });

  test("compact sets aside what there is, and prune removes all but the newest", async () => {
    const db = await store();
    const [compacted] = (await everthread(["compact", "cats", "--json"], { db })).records();
    expect(compacted).toMatchObject({ thread_id: "cats", archive: { archive_id: "a2", messages: 2 } });
    expect((await everthread(["compact", "cats"], { db })).stderr).toContain("There is nothing to set aside.");
    const [pruned] = (await everthread(["prune", "cats", "--keep", "1", "--json"], { db })).records();
    expect(pruned).toEqual({ thread_id: "cats", pruned: ["a1"], protected: [] });
    expect((await everthread(["archive", "show", "a1", "cats"], { db })).stderr).toMatch(/were removed by retention/);
    expect((await everthread(["search", "Noted", "--thread", "cats", "--json"], { db })).records()).toEqual([
      { hits: [], has_more: false },
    ]);
    expect((await everthread(["doctor"], { db })).code).toBe(0);
  });

  test("export and import take archives along, and a line that is wrong is named", async () => {
    const db = await store();
    const { stdout } = await everthread(["export", "--all"], { db });
    expect(stdout.match(/"type":"archive"/g)).toHaveLength(2);
    const target = join(tempDir(), "b.db");
    const args = ["import", "-", "--db", target];
    expect((await everthread(args, { input: stdout })).stdout).toContain("2 threads imported (8 messages)");
    expect((await everthread(["export", "--all"], { db: target })).stdout).toBe(stdout);
    expect((await everthread(args, { input: stdout })).stdout).toContain("Nothing changed");
    const spoilt = stdout.replace('"archive_id":"a1"', '"archive_id":"a7"');
    const refused = await everthread(["import", "-", "--db", "memory:"], { input: spoilt });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^Line 6 .*"a1"/);
  });

  test("X11 a file of schema version 1 is read as it is, and brought up to date by the next command that writes", async ({
    skip,
  }) => {
    const db = await store();
    const old = new DatabaseSync(db);
    const fts5 = old.prepare("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").get();
    if (!fts5) skip("G11 Node's SQLite has FTS5 since 22.16; before, files stay of version 1.");
    old.exec("DROP TABLE everthread_archive_index; UPDATE everthread_schema SET version = 1");
    old.close();
    const before = readFileSync(db);
    const read = await everthread(["search", "like", "--json"], { db });
    expect(JSON.parse(read.stdout).hits).toHaveLength(2);
    expect(readFileSync(db).equals(before)).toBe(true);
    await everthread(["prune", "cats", "--keep", "5"], { db });
    const now = new DatabaseSync(db, { readOnly: true });
    expect(now.prepare("SELECT version FROM everthread_schema").get()).toEqual({ version: 2 });
    now.close();
    expect((await everthread(["search", "like", "--json"], { db })).stdout).toBe(read.stdout);
  });
});

describe("sessions", () => {
  const FACT = "My favourite colour is teal.";
  const QUESTION = "What is my favourite colour?";

  test.for(["sqlite", "json"] as const)(
    "a conversation in a directory: chat, look, compact, go on (%s)",
    async (backend) => {
      const directory = join(tempDir(), "data", "session");
      const config = join(tempDir(), "worker.yaml");
      writeFileSync(config, `persistence:\n  directory: ${directory}\n  backend: ${backend}\n  readable: true\n`);
      expect((await everthread(["read-state", directory])).stderr).toMatch(/^error: There is no session/);
      expect(existsSync(directory)).toBe(false);
      expect((await everthread(["chat", "--config", config, FACT])).stdout).toContain("teal");
      const at = ["--session", directory];
      expect((await everthread(["show", ...at])).stdout).toContain(FACT);
      const [state] = (await everthread(["read-state", directory, "--json"])).records();
      expect(state).toMatchObject({ format: 1, state: "complete", summary: null, messages: [{}, {}] });
      expect((await everthread(["compact", ...at])).stdout).toContain("Archived 2 messages as a1");
      expect((await everthread(["chat", ...at, "Hello"])).code).toBe(0);
      expect((await everthread(["compact", ...at])).stdout).toContain("as a2");
      const answer = (await everthread(["chat", ...at, QUESTION])).stdout;
      expect(answer).toContain(
        backend === "sqlite" ? "I looked it up: you said teal." : "I don't know your favourite colour",
      );
      expect((await everthread(["archives", ...at])).stdout).toMatch(/^a1 .*\na2 /s);
      expect(readFileSync(join(directory, "readable.md"), "utf8")).toContain("# Conversation");
      const copy = [
        "copy",
        `session:${directory}`,
        `session:${directory}-2?backend=${backend === "json" ? "sqlite" : "json"}`,
      ];
      expect((await everthread(copy)).stdout).toContain("1 thread copied");
      const back = ["copy", `session:${directory}-2`, `session:${directory}-3?backend=${backend}`];
      expect((await everthread(back)).stdout).toContain("1 thread copied");
      const states = await Promise.all(
        [directory, `${directory}-2`, `${directory}-3`].map(
          async (one) => (await everthread(["read-state", one])).stdout,
        ),
      );
      expect(new Set(states).size).toBe(1);
    },
  );

  test("is refused where another store is named as well, where it has another owner, and where the configuration is wrong", async () => {
    const directory = join(tempDir(), "session");
    const both = await everthread(["show", "--session", directory, "--db", "a.db"]);
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("--db and --session") });
    await using _session = await openSession({ directory });
    const owned = await everthread(["chat", "--session", directory, "Hi"]);
    expect(owned).toMatchObject({ code: 1, stdout: "" });
    expect(owned.stderr).toContain(`is owned by process ${process.pid}`);
    const thread = await everthread(["chat", "--session", `${directory}-b`, "--thread", "t", "Hi"]);
    expect(thread.stderr).toContain("A session is one thread");
    const config = join(tempDir(), "worker.yaml");
    writeFileSync(config, "persistence:\n  directory: x\n  backnd: json\n");
    const wrong = await everthread(["chat", "--config", config, "Hi"]);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(
      /worker\.yaml, line 3, column 3: persistence\.backnd is not known\. Did you mean backend\?/,
    );
  });

  test("X4 nothing appears beside it: the directory is the session's own, whatever characters it has", async () => {
    const parent = tempDir();
    for (const name of ["with space", "a#b?c%20d", "ümlaut"]) {
      expect((await everthread(["chat", "--session", join(parent, name), "Hello"])).code).toBe(0);
      expect(readdirSync(join(parent, name)).sort()).toEqual(["owner.lock", "state"]);
    }
    expect(readdirSync(parent).sort()).toEqual(["a#b?c%20d", "with space", "ümlaut"]);
  });

  test("what waits on a person is answered in the session too", async () => {
    const at = ["--session", join(tempDir(), "session")];
    const questions = { questions: [{ key: "k", prompt: "Which?", options: [{ value: "a", label: "A" }] }] };
    const asked = await everthread(["chat", ...at, `call ask_user ${JSON.stringify(questions)}`]);
    expect(asked.code).toBe(3);
    expect(asked.stderr).toContain(`--session ${at[1]}`);
    expect((await everthread(["pending", ...at])).stdout).toContain("Which?");
    const answered = await everthread(["respond", ...at, "--answer", '{"k":"a"}']);
    expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining("ask_user said") });
  });
});
