/** The command line on a real (pseudo) terminal, typed at as a person would. Needs Python 3, which has the terminal. */
import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { textOf } from "../../src/messages/construct.ts";
import { tempDir } from "../support/temp.ts";
import { BIN, everthread, plainEnv } from "./support.ts";

const python = process.env.EVERTHREAD_PYTHON ?? "python3";
const hasTerminal = spawnSync(python, ["-c", "import pty, os; os.waitstatus_to_exitcode"]).status === 0;

const ENTER = "\r";
const DOWN = "\u001b[B";
const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const PROMPT = "> ";

async function world() {
  const dir = tempDir(onTestFinished);
  const db = join(dir, "a.db");
  writeFileSync(
    join(dir, "tools.mjs"),
    `export default [{ name: "make", description: "Makes.", execute: ({ name }) => "made " + name,
      parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } }];`,
  );
  const type = async (
    args: string[],
    steps: [string, string][],
    options: { columns?: number; env?: NodeJS.ProcessEnv } = {},
  ) => {
    const script = fileURLToPath(new URL("terminal.py", import.meta.url));
    const argv = [script, JSON.stringify(steps), String(options.columns ?? 100), process.execPath, BIN, ...args];
    const env = plainEnv({ db, env: { TERM: "xterm", ...options.env } });
    const { stdout } = await promisify(execFile)(python, argv, { cwd: dir, env });
    const { output, code, missing } = JSON.parse(stdout) as { output: string; code: number; missing: string | null };
    expect(missing, output).toBe(null);
    return { output, text: stripVTControlCharacters(output).replaceAll("\r", ""), code };
  };
  const messages = async (id = "t") => {
    const store = await SqliteCheckpointer.open(db, { readOnly: true });
    onTestFinished(() => store.close());
    return ((await store.load(id))?.messages ?? []).map((message) => `${message.role}: ${textOf(message)}`);
  };
  return { dir, db, type, messages };
}

describe.skipIf(!hasTerminal)("a session on a terminal (skipped without Python's pty)", () => {
  test("talks, streams, remembers, and leaves by /exit", async () => {
    const { type, messages } = await world();
    const { code, text } = await type(
      ["chat", "--thread", "t"],
      [
        [PROMPT, `my cat is Tom${ENTER}`],
        ["your cat is Tom", ""],
        [PROMPT, `What is my cat?${ENTER}`],
        ["You said Tom.", ""],
        [PROMPT, `/exit${ENTER}`],
      ],
    );
    expect(code).toBe(0);
    expect(text).toContain("New thread: t");
    expect(await messages()).toEqual([
      "user: my cat is Tom",
      "assistant: I will remember that your cat is Tom.",
      "user: What is my cat?",
      "assistant: You said Tom.",
    ]);
  });

  test("Ctrl-C stops the agent while it works and keeps the thread; while idle it leaves, as does Ctrl-D", async () => {
    const { type, messages } = await world();
    const { code } = await type(
      ["chat", "--thread", "t"],
      [
        [PROMPT, `wait 60000 ms${ENTER}`],
        ["wait 60000 ms", CTRL_C],
        ["Stopped. The thread is kept.", ""],
        [PROMPT, `my cat is Tom${ENTER}`],
        ["your cat is Tom", ""],
        [PROMPT, CTRL_C],
      ],
    );
    expect(code).toBe(0);
    // The model may or may not have been asked before the key came.
    expect((await messages()).filter((line) => line !== "assistant: ")).toEqual([
      "user: wait 60000 ms",
      "user: my cat is Tom",
      "assistant: I will remember that your cat is Tom.",
    ]);
    expect((await type(["chat", "--thread", "t"], [[PROMPT, CTRL_D]])).code).toBe(0);
  });

  test("a line typed while the agent works steers it", async () => {
    const { type, messages } = await world();
    await type(
      ["chat", "--thread", "t"],
      [
        [PROMPT, `wait 700 ms${ENTER}`],
        ["wait 700 ms", `my cat is Tom${ENTER}`],
        ["the agent reads this", ""],
        ["your cat is Tom", ""],
        [PROMPT, `/exit${ENTER}`],
      ],
    );
    // Taken up before the first model call, or after it.
    expect((await messages()).filter((line) => line !== "assistant: I waited 700 ms.")).toEqual([
      "user: wait 700 ms",
      "user: my cat is Tom",
      "assistant: I will remember that your cat is Tom.",
    ]);
  });

  test("approvals are asked for: allow, deny with a reason, edit", async () => {
    const { type } = await world();
    const { code, text } = await type(
      ["chat", "--thread", "t", "--tools", "tools.mjs"],
      [
        [PROMPT, `call make {"name":"one"}${ENTER}`],
        ["May make run?", ""],
        ["Allow", ENTER],
        ["made one", ""],
        [PROMPT, `call make {"name":"two"}${ENTER}`],
        ["Deny", DOWN + ENTER],
        ["Why?", `too many${ENTER}`],
        ["too many", ""],
        [PROMPT, `call make {"name":"three"}${ENTER}`],
        ["Edit", DOWN + DOWN + ENTER],
        ["as JSON", `${"\u007f".repeat(7)}four"}${ENTER}`],
        ["make said: made four", ""],
        [PROMPT, `/exit${ENTER}`],
      ],
    );
    expect(code).toBe(0);
    expect(text).not.toContain("made two");
    expect(text).not.toContain("made three");
  });

  test("questions of ask_user are asked for, with choices and free text", async () => {
    const { type, messages } = await world();
    const questions = [
      {
        key: "size",
        prompt: "Which size?",
        options: [
          { label: "Small", value: "s" },
          { label: "Large", value: "l" },
        ],
      },
      { key: "name", prompt: "Whose name?" },
      {
        key: "more",
        prompt: "Extras?",
        multi_select: true,
        required: false,
        options: [
          { label: "Milk", value: "milk" },
          { label: "Sugar", value: "sugar" },
        ],
      },
    ];
    await type(
      ["chat", "--thread", "t", `call ask_user ${JSON.stringify({ questions })}`],
      [
        ["Which size?", ""],
        ["Large", DOWN + ENTER],
        ["Whose name?", `Ada${ENTER}`],
        ["Extras?", ""],
        ["Sugar", ` ${DOWN} ${ENTER}`],
      ],
    );
    const answer = '{\n  "size": "l",\n  "name": "Ada",\n  "more": [\n    "milk",\n    "sugar"\n  ]\n}';
    expect((await messages()).at(2)).toBe(`tool_result: The user answered:\n${answer}`);
  });

  test("later leaves it waiting: exit 3, and the next session asks at once", async () => {
    const { type, messages, db } = await world();
    const later = await type(
      ["chat", "--thread", "t", "--tools", "tools.mjs"],
      [
        [PROMPT, `call make {"name":"one"}${ENTER}`],
        ["Allow", CTRL_C],
      ],
    );
    expect(later.code).toBe(3);
    expect(later.text).toContain("everthread respond t ");
    const [{ pending } = {}] = (await everthread(["pending", "--json"], { db })).records();
    expect(pending).toHaveLength(1);
    const asked = await type(
      ["chat", "--thread", "t", "--tools", "tools.mjs"],
      [
        ["Allow", ENTER],
        ["made one", ""],
        [PROMPT, `/exit${ENTER}`],
      ],
    );
    expect(asked.code).toBe(0);
    expect(await messages()).toHaveLength(4);
  });

  test("a message as an argument asks for approval too; respond without an answer asks", async () => {
    const { type } = await world();
    const args = ["--tools", "tools.mjs"];
    const asked = await type(
      ["chat", "--thread", "t", 'call make {"name":"one"}', ...args],
      [["Later", DOWN + DOWN + DOWN + ENTER]],
    );
    expect(asked.code).toBe(3);
    const answered = await type(["respond", "t", ...args], [["Allow", ENTER]]);
    expect([answered.code, answered.text]).toEqual([0, expect.stringContaining("made one")]);
  });

  test("on a dumb terminal there are no menus and no colours: the question waits, with the command that answers", async () => {
    const { type } = await world();
    const { code, output } = await type(
      ["chat", "--thread", "t", "--tools", "tools.mjs"],
      [[PROMPT, `call make {"name":"one"}${ENTER}`]],
      { env: { TERM: "dumb" } },
    );
    expect(code).toBe(3);
    expect(output).toContain("everthread respond t ");
    expect(output).not.toContain("\u001b[");
  });

  test("colours are shown, and NO_COLOR is heeded; text is made harmless while it streams", async () => {
    const { type } = await world();
    const coloured = await type(["chat", "--thread", "t", "my cat is \u001b[31mTom\u202e"], []);
    expect(coloured.output).toContain("your cat is ␛[31mTom<U+202E>");
    expect(coloured.output).toContain("\u001b[2m");
    expect((await type(["show", "t"], [])).output).toContain("\u001b[1m");
    for (const args of [["show", "t"], ["threads"], ["chat", "--thread", "t", "hi"]]) {
      expect((await type(args, [], { env: { NO_COLOR: "1" } })).output, args[0]).not.toContain("\u001b[");
    }
  });

  test("a table fits its terminal, however narrow, and shows the last words where there is room", async () => {
    const { type, db } = await world();
    for (const id of ["short", `long-${"x".repeat(200)}`, "宽".repeat(60)]) {
      await everthread(["chat", "--thread", id, "my cat is called something rather long, as cats often are"], { db });
    }
    const { default: widthOf } = await import("string-width");
    for (const columns of [20, 59, 60, 80, 200]) {
      const { text } = await type(["threads"], [], { columns });
      for (const line of text.split("\n")) expect(widthOf(line), `${columns}: ${line}`).toBeLessThanOrEqual(columns);
      if (columns < 60 || columns > 100) expect(text.includes("I will remember")).toBe(columns > 100);
    }
  });
});
