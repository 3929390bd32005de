/** `everthread history`, run as a real process. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SqliteMemoryHistory } from "../../src/history/sqlite/history.ts";
import { wordDiff } from "../../src/util/word-diff.ts";
import { everthread } from "../cli/support.ts";
import { tempDir } from "../support/temp.ts";
import { golden } from "./files.ts";

/** A history of a few changes, closed. */
async function filled(): Promise<string> {
  const path = join(tempDir(), "memory.db");
  await using history = await SqliteMemoryHistory.open(path);
  const created_at = "2026-05-07T10:00:00Z";
  await history.addBatch([
    { memory_id: "ada/tea", event: "ADD", new_memory: "Likes green tea", created_at, actor_id: "ada", role: "user" },
    { memory_id: "bob", event: "ADD", new_memory: "Is \u001b[31mred\u001b[0m\nand blue", created_at: "2026-05-08" },
    {
      ...{ memory_id: "ada/tea", event: "UPDATE", old_memory: "Likes green tea", new_memory: "Likes black tea, cold" },
      ...{ created_at, updated_at: "2026-05-09T10:00:00.5Z" },
    },
    { memory_id: "ada/tea", event: "DELETE", old_memory: "Likes black tea, cold", created_at: null },
  ]);
  await history.saveMessages("user_id=ada", [{ role: "user", content: "hi", name: "ada", created_at }]);
  return path;
}

test("lists the latest changes, chosen by memory, actor, event and time", async () => {
  const path = await filled();
  const lines = async (...args: string[]) =>
    (await everthread(["history", path, ...args])).stdout.split("\n").slice(0, -1);
  expect(await lines()).toEqual([
    "2026-05-07T10:00:00+00:00  ADD     ada/tea  Likes green tea",
    "2026-05-08T00:00:00+00:00  ADD     bob  Is ␛[31mred␛[0m␊and blue",
    "2026-05-09T10:00:00.500000+00:00  UPDATE  ada/tea  Likes green tea → Likes black tea, cold",
    "(no time)  DELETE  ada/tea  Likes black tea, cold",
  ]);
  expect(await lines("list", "--memory", "bob")).toHaveLength(1);
  expect(await lines("list", "--actor", "ada")).toHaveLength(1);
  expect(await lines("--event", "ADD", "--since", "2026-05-08")).toHaveLength(1);
  expect(await lines("--until", "2026-05-08 00:00")).toHaveLength(1);
  expect(await lines("--limit", "1")).toEqual(["(no time)  DELETE  ada/tea  Likes black tea, cold"]);
  const [json] = (await everthread(["history", path, "--json", "--limit", "2"])).records();
  expect(json).toMatchObject({ total: 4, changes: [{ event: "UPDATE" }, { event: "DELETE", is_deleted: true }] });
});

test("shows one memory's life with what each change did to its words", async () => {
  const path = await filled();
  const { stdout, code } = await everthread(["history", path, "show", "ada/tea"]);
  expect(code).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "2026-05-07T10:00:00+00:00  ADD  (ada, user)",
    "  {+Likes green tea+}",
    "2026-05-09T10:00:00.500000+00:00  UPDATE",
    "  Likes [-green-]{+black+} tea{+, cold+}",
    "(no time)  DELETE",
    "  [-Likes black tea, cold-]",
    "",
  ]);
  const coloured = await everthread(["history", path, "show", "ada/tea"], { env: { FORCE_COLOR: "1" } });
  expect(coloured.stdout).toContain("Likes \u001b[31mgreen\u001b[39m\u001b[32mblack\u001b[39m tea");
  const [json] = (await everthread(["history", path, "show", "ada/tea", "--json"])).records();
  expect(json).toMatchObject({
    memory_id: "ada/tea",
    changes: [
      {},
      { difference: [{ kind: "same", text: "Likes " }, { kind: "removed", text: "green" }, {}, {}, {}] },
      {},
    ],
  });
  const hostile = await everthread(["history", path, "show", "bob"]);
  expect(hostile.stdout).toBe("2026-05-08T00:00:00+00:00  ADD\n  {+Is ␛[31mred␛[0m\n  and blue+}\n");
});

test("exports and imports, once, and never over a file or a database", async () => {
  const path = await filled();
  const dir = tempDir();
  const out = join(dir, "out.jsonl");
  expect(await everthread(["history", path, "export", "-o", out])).toMatchObject({ code: 0, stdout: "" });
  expect((statSync(out).mode & 0o777).toString(8)).toBe("600");
  expect((await everthread(["history", path, "export"])).stdout).toBe(readFileSync(out, "utf8"));
  expect((await everthread(["history", path, "export", "-o", out])).stderr).toMatch(
    /there already; --force replaces it/,
  );
  expect((await everthread(["history", path, "export", "-o", path, "--force"])).stderr).toMatch(/database/);

  const copy = join(dir, "copy.db");
  const [report] = (await everthread(["history", copy, "import", out, "--json"])).records();
  expect(report).toEqual({ records: 4, messages: 1 });
  expect((await everthread(["history", copy, "export"])).stdout).toBe(readFileSync(out, "utf8"));
  const again = await everthread(["history", copy, "import", "-", "--json"], { input: readFileSync(out) });
  expect(again.code).toBe(1);
  expect(JSON.parse(again.stderr)).toMatchObject({ error: { code: "duplicate_record" } });
});

test("imports a file of Mem0's TypeScript package", async () => {
  const dir = tempDir();
  const copy = join(dir, "copy.db");
  const result = await everthread(["history", copy, "import", golden(dir, "mem0-npm")]);
  expect(result).toMatchObject({ code: 0, stderr: "Imported 23 changes and 7 messages.\n" });
  await using history = await SqliteMemoryHistory.open(copy, { readOnly: true });
  expect(await history.get("m-1")).toHaveLength(3);
});

test("X11 reading creates and changes nothing", async () => {
  const dir = tempDir();
  const missing = join(dir, "missing.db");
  for (const args of [[], ["show", "m"], ["export"], ["import", join(dir, "none.jsonl")]]) {
    const result = await everthread(["history", missing, ...args]);
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/^error: .*\n$/);
    expect(existsSync(missing)).toBe(false);
  }
  const old = golden(dir, "mem0-0.0.9");
  const before = readFileSync(old);
  expect((await everthread(["history", old, "show", "m-1"])).stdout).toContain("Likes [-tea-]{+coffee+}");
  expect(readFileSync(old).equals(before)).toBe(true);
});

test("wrong usage is said in one line", async () => {
  const path = await filled();
  const cases: [string[], number, RegExp][] = [
    [["history"], 2, /missing required argument 'file'/],
    [["history", path, "dance"], 2, /history can't dance. It can list, show, export and import/],
    [["history", path, "show"], 2, /Name the memory/],
    [["history", path, "import"], 2, /Name the file/],
    [["history", path, "show", "nobody"], 1, /no memory "nobody"/],
    [["history", path, "--since", "soon"], 1, /since: must be a Date/],
    [["history", path, "import", join(path, "..", "none.jsonl")], 1, /can't be read/],
  ];
  for (const [args, code, problem] of cases) {
    const result = await everthread(args);
    expect(result.stderr).toMatch(problem);
    expect(result).toMatchObject({ code, stdout: "" });
  }
  const bad = join(tempDir(), "bad.jsonl");
  writeFileSync(bad, '{"record":{"memory_id":"m","event":"ADD"}}\nnot json\n');
  expect((await everthread(["history", path, "import", bad])).stderr).toMatch(/line 2: is not JSON/);
});

test.each([
  ["", "", ""],
  ["a b c", "a b c", "a b c"],
  ["", "new", "+new+"],
  ["old", "", "-old-"],
  ["a b c", "a x c", "a -b-+x+ c"],
  ["a b c d", "b c d e", "-a -b c d+ e+"],
  ["the cat sat", "the cat, sat", "the cat+,+ sat"],
  ["one two", "three four", "-one-+three+ -two-+four+"],
  ["crème brûlée 日本", "crème brulee 日本", "crème -brûlée-+brulee+ 日本"],
  ["👩‍👩‍👧 x", "👩‍👩‍👦 x", "👩‍👩‍-👧-+👦+ x"],
])("the words of %j and %j differ as %j", (before, after, shown) => {
  const changes = wordDiff(before, after);
  const sign = { same: "", removed: "-", added: "+" };
  expect(changes.map(({ kind, text }) => `${sign[kind]}${text}${sign[kind]}`).join("")).toBe(shown);
  const without = (kind: string) => changes.flatMap((change) => (change.kind === kind ? [] : [change.text])).join("");
  expect([without("added"), without("removed")]).toEqual([before, after]);
});

test("long texts are compared in no time", () => {
  const before = Array.from({ length: 50_000 }, (_, i) => `word${i}`).join(" ");
  const after = Array.from({ length: 50_000 }, (_, i) => `other${i}`).join(" ");
  const started = performance.now();
  expect(wordDiff(before, after).length).toBeGreaterThan(0);
  expect(wordDiff(before, `${before} end`).at(-1)).toEqual({ kind: "added", text: " end" });
  expect(performance.now() - started).toBeLessThan(3000);
});
