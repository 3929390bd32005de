/** chat and respond without a terminal: as scripts use them. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { SqliteCheckpointer } from "../../src/checkpoint/sqlite/checkpointer.ts";
import { assistantMessage, toolCall, userMessage } from "../../src/messages/construct.ts";
import { chatStream, startProviderServer } from "../support/provider-server.ts";
import { tempDir } from "../support/temp.ts";
import { everthread, type Outcome, outcome, plainEnv, shows, start } from "./support.ts";

const TOOLS = `
import { writeFileSync } from "node:fs";
const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"], additionalProperties: false };
export default [
  { name: "make", description: "Makes a file.", parameters: schema, execute: ({ name }) => { writeFileSync(name, "made"); return "made " + name; } },
  { name: "look", description: "Looks.", parameters: schema, execute: ({ name }, { update }) => { update({ at: name }); return "seen " + name; } },
];
`;

async function world() {
  const dir = tempDir(onTestFinished);
  const db = join(dir, "a.db");
  writeFileSync(join(dir, "tools.mjs"), TOOLS);
  const run = (...args: string[]) => everthread(args, { db, cwd: dir });
  const open = async () => {
    const store = await SqliteCheckpointer.open(db);
    onTestFinished(() => store.close());
    return store;
  };
  return { dir, db, run, open };
}

/** The command that stderr tells, as arguments. */
function toldCommand(stderr: string): string[] {
  const line = stderr.split("\n").find((line) => line.includes("everthread respond")) ?? "";
  return [...line.matchAll(/'([^']*)'|([^\s']+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "").slice(1);
}

describe("chat", () => {
  test("remembers between processes; only the answer is on stdout", async () => {
    const { run } = await world();
    const first = await run("chat", "--thread", "me", "Remember: my favourite colour is teal.");
    expect(first).toMatchObject({ code: 0, stdout: "I will remember that your favourite colour is teal.\n" });
    expect(first.stderr).toBe(
      "Model: offline, a few rules and no language model. --model names another.\nNew thread: me\n",
    );
    const second = await run("chat", "--thread", "me", "--model", "offline", "What did I say my favourite colour was?");
    expect(second).toMatchObject({ code: 0, stdout: "You said teal.\n", stderr: "" });
  });

  test("takes the message on stdin, and begins a thread of its own", async () => {
    const { db } = await world();
    const said = await everthread(["chat"], { db, input: "\ufeffmy cat is Tom\nand more \u{1f600}\r\n" });
    expect(said.code).toBe(0);
    const id = /^New thread: ([0-9a-f]{32})$/m.exec(said.stderr)?.[1] ?? "";
    const [, message] = (await everthread(["show", id.slice(0, 8), "--json"], { db })).records();
    expect(message?.message).toMatchObject({ content: [{ text: "my cat is Tom\nand more \u{1f600}" }] });
    expect((await everthread(["chat"], { db, input: "\n" })).code).toBe(2);
  });

  test("--json writes the events as lines, in order, the last one run_end", async () => {
    const { run } = await world();
    const { code, stderr, records } = await run(
      "chat",
      "--thread",
      "t",
      "--json",
      "--tools",
      "tools.mjs",
      "--approve",
      "none",
      'call look {"name":"it"}',
    );
    expect([code, stderr]).toEqual([0, ""]);
    const types = records().map(({ type }) => type);
    expect(types.filter((type, i) => type !== types[i - 1])).toEqual([
      "run_start",
      "message",
      "tool_call_delta",
      "message",
      "tool_start",
      "tool_update",
      "tool_end",
      "message",
      "turn_end",
      "text_delta",
      "message",
      "turn_end",
      "run_end",
    ]);
    expect(records()[0]).toMatchObject({ type: "run_start", thread_id: "t", run_id: expect.any(String) });
    expect(records().find(({ type }) => type === "tool_update")).toMatchObject({
      tool_name: "look",
      progress: { at: "it" },
    });
    expect(records().at(-1)).toMatchObject({ status: "completed", text: "look said: seen it", stop_reason: "stop" });
    expect(records().at(-1)).not.toHaveProperty("messages");
  });

  test("a shortened id is taken with its mark only, so that a new id never becomes another thread", async () => {
    const { run, open } = await world();
    await run("chat", "--thread", "user-42", "my name is Ada");
    expect((await run("chat", "--thread", "user-4…", "What is my name?")).stdout).toBe("You said Ada.\n");
    expect((await run("chat", "--thread", "user-4", "hi")).stderr).toContain("New thread: user-4\n");
    expect((await run("chat", "--thread", "x…", "hi")).stderr).toContain("There is no thread");
    const { items } = await (await open()).listThreads();
    expect(items.map(({ threadId }) => threadId)).toEqual(["user-4", "user-42"]);
    expect((await run("chat", "--thread", "", "hi")).stderr).toContain("The thread id is empty");
    expect((await run("chat", "--thread", "x".repeat(300), "hi")).stderr).toContain("300 characters");
  });

  test("--run-id tried again does nothing twice, and gives the same answer", async () => {
    const { run, open } = await world();
    const args = ["chat", "--thread", "t", "--run-id", "r1", "my dog is Rex"];
    const answers = [await run(...args), await run(...args)].map(({ code, stdout }) => [code, stdout]);
    expect(answers[0]).toEqual([0, "I will remember that your dog is Rex.\n"]);
    expect(answers[1]).toEqual(answers[0]);
    expect((await (await open()).load("t"))?.messages).toHaveLength(2);
    expect((await run(...args, "--json")).records()).toMatchObject([
      { type: "run_end", replayed: true, status: "completed" },
    ]);
    expect((await run("chat", "--run-id", "x".repeat(65), "hi")).code).toBe(1);
  });

  test("Ctrl-C stops the run and keeps the thread: exit 130", async () => {
    const { db, run, open } = await world();
    const child = start(["chat", "--thread", "t", "--json", "wait 20000 ms"], { db });
    const ended = outcome(child);
    const store = await open();
    await expect.poll(async () => (await store.load("t"))?.messages.length).toBe(1);
    child.kill("SIGINT");
    const { code, records } = await ended;
    expect([code, records().at(-1)?.status]).toEqual([130, "aborted"]);
    expect((await store.load("t"))?.messages.at(-1)).toMatchObject({ role: "assistant", stop_reason: "aborted" });
    expect((await run("chat", "--thread", "t", "my cat is Tom")).code).toBe(0);
  });

  test("a reader that goes away does not end the run", async () => {
    const { dir, db, open } = await world();
    const child = start(
      ["chat", "--thread", "t", "--json", "--tools", "tools.mjs", "--approve", "none", "wait 300 ms"],
      { db, cwd: dir },
    );
    const ended = outcome(child);
    child.stdout?.destroy();
    expect((await ended).code).toBe(0);
    expect((await (await open()).load("t"))?.messages.at(-1)).toMatchObject({ role: "assistant", stop_reason: "stop" });
  });

  test("a module of tools that can't be used says why", async () => {
    const { dir, run } = await world();
    for (const [source, problem] of [
      ["export const nothing = 1", "exports neither a default nor tools"],
      ["export default {}", "must be an array of tools"],
      ["export const tools = [], approve = 1", "approve must be a function"],
      ["export const tools = [], middleware = 1", "middleware must be an array"],
      ["syntax error", "can't be used"],
    ] as const) {
      const name = `bad${problem.length}.mjs`;
      writeFileSync(join(dir, name), source);
      const { code, stderr } = await run("chat", "hi", "--tools", name);
      expect([code, stderr]).toEqual([1, expect.stringContaining(problem)]);
    }
    expect((await run("chat", "hi", "--tools", "none.mjs")).stderr).toContain("Cannot find module");
  });

  test("a module's approve and middleware are heeded, and --approve comes before its approve", async () => {
    const { dir, run } = await world();
    writeFileSync(
      join(dir, "own.mjs"),
      `${TOOLS.replace("export default", "export const tools =")}
      export const approve = ({ toolName }) => toolName === "look" ? "allow" : { decision: "deny", reason: "not here" };
      export const middleware = [{ systemPrompt: () => "x", afterToolCall: (result) => ({ ...result, content: [{ type: "text", text: "changed" }] }) }];`,
    );
    expect((await run("chat", "--tools", "own.mjs", 'call look {"name":"x"}')).stdout).toBe("look said: changed\n");
    expect((await run("chat", "--tools", "own.mjs", 'call make {"name":"x"}')).stdout).toContain("not here");
    expect((await run("chat", "--tools", "own.mjs", "--approve", "look", 'call look {"name":"x"}')).code).toBe(3);
    expect((await run("chat", "--tools", "own.mjs", "--approve", "look", 'call make {"name":"x"}')).stdout).toBe(
      "make said: changed\n",
    );
  });
});

describe("approvals", () => {
  test("H5 a call that needs a person is saved, told with the command that answers, and exits with 3", async () => {
    const { dir, run, open } = await world();
    const asked = await run(
      "chat",
      "--db",
      join(dir, "a.db"),
      "--thread",
      "it is me",
      "--tools",
      "tools.mjs",
      'call make {"name":"file"}',
    );
    expect([asked.code, asked.stdout]).toEqual([3, ""]);
    expect(asked.stderr).toContain('May make run? {"name":"file"}');
    expect(existsSync(join(dir, "file"))).toBe(false);
    const refused = await run("chat", "--thread", "it is me", "and?");
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain(
      "waits on an answer, so the message was not taken. Answer with: everthread respond 'it is me'",
    );
    const command = toldCommand(asked.stderr);
    expect(command).toEqual(
      expect.arrayContaining(["respond", "it is me", "--approve", "--tools", "tools.mjs", "--db"]),
    );
    const answered = await run(...command);
    expect(answered).toMatchObject({ code: 0, stdout: "make said: made file\n" });
    expect(existsSync(join(dir, "file"))).toBe(true);
    expect((await (await open()).listRuns("it is me")).items[0]?.completionSeq).toBe(1);
    const late = await run(...command, "--json");
    expect([late.code, JSON.parse(late.stderr).error.code]).toEqual([1, "hitl_no_pending_request"]);
  });

  test("deny with a reason, and edit", async () => {
    const { dir, run } = await world();
    const ask = () => run("chat", "--thread", "t", "--tools", "tools.mjs", 'call make {"name":"wrong"}');
    await ask();
    expect((await run("respond", "t", "--tools", "tools.mjs", "--deny", "not today")).stdout).toContain("not today");
    await ask();
    expect((await run("respond", "t", "--tools", "tools.mjs", "--deny")).stdout).toContain("denied this call");
    await ask();
    const bad = await run("respond", "t", "--tools", "tools.mjs", "--edit", '{"nmae":1}', "--json");
    expect([bad.code, JSON.parse(bad.stderr).error.code]).toEqual([1, "hitl_invalid_answer"]);
    expect((await run("respond", "t", "--tools", "tools.mjs", "--edit", '{"name":"right"}')).stdout).toContain(
      "made right",
    );
    expect([existsSync(join(dir, "wrong")), existsSync(join(dir, "right"))]).toEqual([false, true]);
  });

  test("H1 of several calls in one turn each is asked about: exit 3 with the next, then all run", async () => {
    const { run } = await world();
    const asked = await run(
      "chat",
      "--thread",
      "t",
      "--tools",
      "tools.mjs",
      'call make {"name":"a"}\ncall make {"name":"a"}',
    );
    const next = await run(...toldCommand(asked.stderr), "--json");
    expect(next.code).toBe(3);
    expect(next.records().at(-1)).toMatchObject({
      type: "run_end",
      status: "suspended",
      pending: { payload: { kind: "approve" } },
    });
    const stale = await run(...toldCommand(asked.stderr), "--json");
    expect(JSON.parse(stale.stderr).error.code).toBe("hitl_stale_answer");
    const { pending } = next.records().at(-1) as { pending: { question_id: string } };
    const last = await run("respond", "t", "--tools", "tools.mjs", "--approve", "--question", pending.question_id);
    expect(last).toMatchObject({ code: 0, stdout: "make said: made a\nmake said: made a\n" });
  });

  test("ask_user is always there: its questions are told and answered", async () => {
    const { run } = await world();
    const questions = {
      questions: [
        {
          key: "size",
          prompt: "Which size?",
          options: [
            { label: "Small", value: "s" },
            { label: "Large", value: "l" },
          ],
        },
      ],
    };
    const asked = await run("chat", "--thread", "t", `call ask_user ${JSON.stringify(questions)}`);
    expect(asked.code).toBe(3);
    expect(asked.stderr).toContain("size: Which size?\n    s: Small\n    l: Large\n");
    const wrong = await run("respond", "t", "--answer", '{"size":"xl"}');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('takes one of "s", "l"')]);
    expect((await run("respond", "t", "--approve")).stderr).toContain(
      "--approve is no answer to what this thread waits on; --answer would be",
    );
    expect((await run("respond", "t")).stderr).toMatch(
      /^.*\nerror: Give an answer, such as: everthread respond t .*--answer '\{"size":"s"\}'/,
    );
    expect((await run("respond", "t", "--answer", '{"size":"l"}')).stdout).toContain('"size": "l"');
  });

  test("a confirmation takes --yes and --no", async () => {
    const { dir, run } = await world();
    writeFileSync(
      join(dir, "confirm.mjs"),
      `${TOOLS}\nexport const approve = () => ({ decision: "ask", confirm: "Really?" });`,
    );
    for (const [answer, said] of [
      ["--yes", "made it"],
      ["--no", "denied"],
    ] as const) {
      // An id that looks like an option is told behind "--".
      const asked = await run("chat", "--thread", "-x", "--tools", "confirm.mjs", 'call make {"name":"it"}');
      expect(asked.stderr).toContain("Really?");
      const command = toldCommand(asked.stderr);
      expect(command.slice(-2)).toEqual(["--", "-x"]);
      expect((await run(...command.map((word) => (word === "--yes" ? answer : word)))).stdout).toContain(said);
    }
  });

  test("H10 --abort closes the conversation without a model or tools", async () => {
    const { run, open } = await world();
    await run("chat", "--thread", "t", "--tools", "tools.mjs", 'call make {"name":"a"}');
    const wrong = await run("respond", "t", "--abort", "no", "--question", "other", "--json");
    expect(JSON.parse(wrong.stderr).error.code).toBe("hitl_stale_answer");
    expect(await run("respond", "t", "--abort", "nobody was there")).toMatchObject({ code: 0, stdout: "" });
    const { messages = [] } = (await (await open()).load("t")) ?? {};
    expect(JSON.stringify(messages)).toContain("nobody was there");
    expect((await run("chat", "--thread", "t", "my cat is Tom")).code).toBe(0);
  });

  test("H7 what was asked of other arguments than the thread holds is refused, and nothing runs", async () => {
    const { dir, run, open } = await world();
    const store = await open();
    await store.append("t", [userMessage("x"), assistantMessage([toolCall("q", "make", { name: "real" })])]);
    const payload = { kind: "approve" as const, tool_name: "make", tool_call_id: "q", args: { name: "shown" } };
    await store.savePendingRequest("t", { question_id: "q", thread_id: "t", payload, created_at: 1 });
    const { code, stderr } = await run("respond", "t", "--tools", "tools.mjs", "--approve", "--json");
    expect([code, JSON.parse(stderr).error.code]).toEqual([1, "hitl_mismatch"]);
    expect(existsSync(join(dir, "real"))).toBe(false);
  });
});

describe("models", () => {
  async function server() {
    const provider = await startProviderServer();
    onTestFinished(() => provider.close());
    return provider;
  }
  const ask = async (url: string, args: string[], env: NodeJS.ProcessEnv): Promise<Outcome> =>
    await everthread(["chat", "hi", "--db", "memory:", ...args], { env: { ...env, TEST_URL: url } });

  test("openai-compatible at a base URL, with and without a key; EVERTHREAD_MODEL", async () => {
    const provider = await server();
    provider.enqueue(chatStream({ text: "Hello from there." }), chatStream({ text: "Again." }));
    const first = await ask(
      provider.url,
      ["--model", "openai-compatible:local", "--base-url", `${provider.url}/v1`, "--system", "Be brief."],
      {},
    );
    expect(first).toMatchObject({ code: 0, stdout: "Hello from there.\n" });
    const env = { EVERTHREAD_MODEL: "openai-compatible:local", OPENAI_COMPATIBLE_API_KEY: "secret" };
    expect((await ask(provider.url, ["--base-url", `${provider.url}/v1`], env)).stdout).toBe("Again.\n");
    expect(
      provider.requests.map(({ path, headers, body }) => [path, headers.authorization, body.messages[0].role]),
    ).toEqual([
      ["/v1/chat/completions", undefined, "system"],
      ["/v1/chat/completions", "Bearer secret", "user"],
    ]);
  });

  test.each([
    ["anthropic:claude-test", "ANTHROPIC_API_KEY", "/v1/messages", "x-api-key"],
    ["openai:gpt-test", "OPENAI_API_KEY", "/v1/responses", "authorization"],
  ])("%s takes its key from %s, and its refusal is an error in one line", async (model, variable, path, header) => {
    const provider = await server();
    const missing = await ask(provider.url, ["--model", model], {});
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining(`Set ${variable}`)]);
    // Nothing is queued, so the server refuses the request.
    const { code, stdout, stderr } = await ask(
      provider.url,
      ["--model", model, "--base-url", `${provider.url}/v1`, "--json"],
      { [variable]: "secret-key" },
    );
    expect(code).toBe(1);
    expect(JSON.parse(stderr).error).toMatchObject({
      code: "model_bad_request",
      message: expect.stringContaining("no response was queued"),
    });
    expect(JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      type: "run_end",
      status: "failed",
      error: { code: "model_bad_request" },
    });
    expect(provider.requests.map((request) => [request.path, String(request.headers[header])])).toEqual([
      [path, expect.stringContaining("secret-key")],
    ]);
  });

  test.each(["anthropic", "openai", "openai-compatible"])(
    "%s without its package says what to install",
    async (provider) => {
      const home = tempDir(onTestFinished);
      const root = fileURLToPath(new URL("../..", import.meta.url));
      for (const part of ["bin", "dist", "package.json"])
        cpSync(join(root, part), join(home, part), { recursive: true });
      const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
      for (const name of Object.keys(dependencies)) {
        mkdirSync(dirname(join(home, "node_modules", name)), { recursive: true });
        symlinkSync(join(root, "node_modules", name), join(home, "node_modules", name));
      }
      const args = ["chat", "hi", "--db", "memory:", "--model", `${provider}:m`, "--base-url", "http://127.0.0.1:9"];
      const run = spawnSync(process.execPath, [join(home, "bin/everthread.js"), ...args], {
        encoding: "utf8",
        env: plainEnv({}),
      });
      expect(run.stderr).toBe(
        `error: The model ${provider}:m needs a package that is not installed: npm install @ai-sdk/${provider}\n`,
      );
      expect(run.status).toBe(1);
    },
  );

  test("ANTHROPIC_BASE_URL is taken with and without the version", async () => {
    const provider = await server();
    for (const url of [provider.url, `${provider.url}/v1`, `${provider.url}/proxy/v1`]) {
      await ask(url, ["--model", "anthropic:claude-test"], { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: url });
    }
    expect(provider.requests.map(({ path }) => path)).toEqual(["/v1/messages", "/v1/messages", "/proxy/v1/messages"]);
  });

  test("what is said before a tool call is not the answer", async () => {
    const { dir, db } = await world();
    const provider = await server();
    const call = { id: "c1", name: "look", arguments: '{"name":"it"}' };
    provider.enqueue(
      chatStream({ text: "Let me see.", toolCalls: [call] }),
      chatStream({ text: "There \u001b[31mit is." }),
    );
    const args = [
      "chat",
      "--model",
      "openai-compatible:m",
      "--base-url",
      provider.url,
      "--tools",
      "tools.mjs",
      "--approve",
      "none",
      "Look!",
    ];
    const { stdout, stderr } = await everthread(args, { db, cwd: dir });
    expect(stdout).toBe("There ␛[31mit is.\n");
    expect(stderr).toMatch(/Let me see\.\n→ look \{"name":"it"\}\n… look \{"at":"it"\}\n← look said: seen it\n$/);
  });

  test("Ctrl-C stops a model that hangs", async () => {
    const provider = await server();
    provider.enqueue({ chunks: chatStream({ text: "Beginning" }).chunks.slice(0, 2), end: "hang" });
    const { db } = await world();
    const child = start(["chat", "hi", "--json", "--model", "openai-compatible:m", "--base-url", provider.url], { db });
    const ended = outcome(child);
    await shows(child.stdout, '"text_delta"');
    child.kill("SIGINT");
    expect((await ended).code).toBe(130);
    await provider.disconnected();
  });
});
