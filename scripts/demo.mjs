// The tour: really separate processes on one SQLite file, with the offline model. It shows what it does and checks each
// step; anything that is not as promised ends it with a non-zero exit code.
//
//   npm run demo                    in a directory that is removed afterwards
//   npm run demo -- ./somewhere     keeps the files there, to look at them
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { check, Deviation } from "./demo/check.mjs";
import { run, runAndKill } from "./demo/processes.mjs";
import { allRows, openReader, printRows } from "./demo/rows.mjs";

const THREAD = "user-42";
const QUESTION = "What did I say my favourite colour was?";
const FACT = "My dentist's name is Lindqvist.";
const FACT_QUESTION = "What is my dentist's name?";
const UNKNOWN =
  "error: The outcome of this tool call is unknown: the program stopped before its result was stored. It may have run. It was not run again.";

async function remember(file) {
  heading("1. Remember, and end");
  const { lines } = await run("prompt.mjs", file, THREAD, "Remember: my favourite colour is teal.", "first");
  check("it was understood", lines, [
    "you    Remember: my favourite colour is teal.",
    "agent  I will remember that your favourite colour is teal.",
  ]);
}

async function recall(file) {
  heading("2. A new process remembers");
  const { lines } = await run("prompt.mjs", file, THREAD, QUESTION, "second");
  check("the answer comes from the file", lines, [`you    ${QUESTION}`, "agent  You said teal."]);
}

async function carryOn(file) {
  heading("3. kill -9 in the middle of a tool call");
  const began = (line) => line === "tool   deploy web began";
  const killed = await runAndKill(began, "prompt.mjs", file, THREAD, 'call deploy {"service":"web"}', "third");
  check("the process was killed while its tool worked", killed.signal, "SIGKILL");

  heading("   A new process carries on", "");
  const { lines } = await run("prompt.mjs", file, THREAD, QUESTION, "fourth");
  check("the interrupted call is answered as unknown, and the thread goes on", lines, [
    "thread a tool call was interrupted",
    `result ${UNKNOWN}`,
    `you    ${QUESTION}`,
    "agent  You said teal.",
  ]);
  check("the tool was not run again", effects(file), [`${killed.pid} deploy web`]);
}

async function approve(file) {
  heading("4. Ask in one process, answer in another");
  const ask = async (path, ...runId) => {
    const { lines } = await run("prompt.mjs", file, THREAD, `call delete_files {"path":"${path}"}`, ...runId);
    check("it waits for a person, and the process has ended", lines.at(-1), waits(path));
    return effects(file).length;
  };
  const answer = async (decision, before) => {
    const { pid, lines } = await run("answer.mjs", file, THREAD, JSON.stringify(decision));
    const ran = effects(file).slice(before);
    return { lines: lines.slice(1), ran: ran.map((line) => line.replace(`${pid} `, "")) };
  };
  const waits = (path) => `waits  may I run delete_files {"path":"${path}"}?`;

  let before = await ask("./old");
  const approved = await answer({ decision: "approve" }, before);
  check("approved: the tool runs in the process that answered, once", approved, {
    lines: ["tool   delete_files ./old runs", "result deleted ./old", "agent  delete_files said: deleted ./old"],
    ran: ["delete_files ./old"],
  });

  before = await ask("./src");
  const denied = await answer({ decision: "deny", reason: "that is my work" }, before);
  check("denied: the tool does not run, and the model reads why", denied, {
    lines: [
      "result error: The user denied this call: that is my work",
      "agent  delete_files failed: The user denied this call: that is my work",
    ],
    ran: [],
  });

  before = await ask("./", "edited");
  const edited = await answer({ decision: "edit", edited_args: { path: "./tmp" } }, before);
  check("edited: the tool runs with what the person wrote", edited, {
    lines: ["tool   delete_files ./tmp runs", "result deleted ./tmp", "agent  delete_files said: deleted ./tmp"],
    ran: ["delete_files ./tmp"],
  });
}

async function forkAndDiverge(file) {
  heading("5. Fork after the second run, and diverge");
  const fork = await run("fork.mjs", file, THREAD, "user-42-fork", "second");
  check("the fork has what was said until then", fork.lines, ["thread user-42-fork begins with 4 messages of user-42"]);

  await run("prompt.mjs", file, THREAD, "My favourite colour is now red.");
  await run("prompt.mjs", file, "user-42-fork", "My favourite colour is now green.");
  const original = await run("prompt.mjs", file, THREAD, QUESTION, "last");
  const forked = await run("prompt.mjs", file, "user-42-fork", QUESTION);
  check(
    "each keeps its own continuation",
    [original.lines[1], forked.lines[1]],
    ["agent  You said red.", "agent  You said green."],
  );
}

async function askAside(file, reader) {
  heading("6. forkOnce asks on the side");
  const before = allRows(reader);
  const { lines } = await run("aside.mjs", file, THREAD, QUESTION, "second");
  check("it answers as the thread stood after the second run", lines, [`you    ${QUESTION}`, "agent  You said teal."]);
  check(
    `and writes nothing: all ${before.messages.length} messages and every other row are as before`,
    allRows(reader),
    before,
  );
}

function showRows(reader) {
  heading(`7. The rows, by plain SQL with ${reader.name}`);
  const sql = `SELECT id, run_id AS run, json_extract(message_json, '$.role') AS role,
       coalesce(substr(json_extract(message_json, '$.content[0].text'), 1, 50),
                'calls ' || json_extract(message_json, '$.content[0].name')) AS begins
  FROM messages WHERE thread_id = '${THREAD}' AND run_id IN ('first', 'second', 'third', 'edited') ORDER BY id`;
  console.log(`   ${sql}\n`);
  const rows = reader.query(sql);
  printRows(rows);
  const expected = [
    ["first", "user", "Remember: my favourite colour is teal."],
    ["first", "assistant", "I will remember that your favourite colour is teal"],
    ["second", "user", "What did I say my favourite colour was?"],
    ["second", "assistant", "You said teal."],
    ["third", "user", 'call deploy {"service":"web"}'],
    ["third", "assistant", "calls deploy"],
    ["third", "tool_result", "The outcome of this tool call is unknown: the prog"],
    ["edited", "user", 'call delete_files {"path":"./"}'],
    ["edited", "assistant", "calls delete_files"],
    ["edited", "tool_result", "deleted ./tmp"],
    ["edited", "assistant", "delete_files said: deleted ./tmp"],
  ];
  check(
    "the rows say what was said",
    rows.map(({ run, role, begins }) => [run, role, begins]),
    expected,
  );
}

async function compact(directory) {
  heading("8. A long conversation in a session: compacted twice, and still known");
  const session = join(directory, "session");
  const { readState } = await import("everthread/session");
  const notes = (from, to) =>
    Array.from({ length: to - from + 1 }, (_, i) => `My tide reading ${from + i} is ${from + i} m.`);
  const known = ({ summary, messages }) => `${summary} ${JSON.stringify(messages)}`.includes("Lindqvist");

  const { lines } = await run("session.mjs", session, FACT, ...notes(1, 10));
  const archives = lines.filter((line) => line.startsWith("kept"));
  check("it was compacted twice, each time into an archive", archives.length, 2);
  check("what was said first is in the context no more, nor in the summary", known(await readState(session)), false);

  heading("   A new process looks it up", "");
  const asked = await run("session.mjs", session, FACT_QUESTION);
  const calls = asked.lines.filter((line) => line.startsWith("calls")).map((line) => line.split(" ")[2]);
  check("it searches the archives and fetches what was said", calls, ["memory_search", "memory_fetch"]);
  check("and knows it", asked.lines.at(-1), "agent  I looked it up: you said Lindqvist.");

  heading("   kill -9 in the middle of a compaction", "");
  const before = await readState(session);
  const full = (line) => line.startsWith("full");
  const killed = await runAndKill(full, "session.mjs", session, "--slowly", ...notes(11, 30));
  check("the process was killed while its context was being compacted", killed.signal, "SIGKILL");
  const after = await readState(session);
  const said = killed.lines.filter((line) => line.startsWith("you") || line.startsWith("agent")).length;
  check("every message that was stored is there, and no archive by half", after, {
    ...after,
    archives: before.archives,
    messages: [...before.messages, ...after.messages.slice(-said)],
  });

  heading("   A new process goes on where it was", "");
  const { lines: last } = await run("session.mjs", session, ...notes(31, 31), FACT_QUESTION);
  const compacted = last.some((line) => line.startsWith("kept"));
  check("it compacts then", compacted, true);
  check("and still knows what was said first", last.at(-1), "agent  I looked it up: you said Lindqvist.");
}

function effects(file) {
  const log = join(file, "..", "effects.log");
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : [];
}

function heading(text, gap = "\n") {
  console.log(`${gap}${text}`);
}

async function tour(directory) {
  const file = join(directory, "agent.db");
  console.log(`One SQLite file, ${file}, and at the end a session; every step is a process of its own.`);
  const reader = await openReader(file);
  if (existsSync(file)) {
    check("the file there holds no conversation yet", reader.query("SELECT count(*) AS messages FROM messages"), [
      { messages: 0 },
    ]);
  }
  await remember(file);
  await recall(file);
  await carryOn(file);
  await approve(file);
  await forkAndDiverge(file);
  await askAside(file, reader);
  showRows(reader);
  await compact(directory);
}

const began = performance.now();
const kept = process.argv[2];
const directory = kept ? resolve(kept) : mkdtempSync(join(tmpdir(), "everthread-demo-"));
try {
  if (!existsSync(new URL("../dist/index.js", import.meta.url)))
    throw new Deviation("the package is built", "dist/index.js", "nothing; run npm run build");
  mkdirSync(directory, { recursive: true });
  await tour(directory);
  console.log(`\nAll as it should be, in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
} catch (error) {
  process.exitCode = 1;
  console.error(error instanceof Deviation ? `\n${error.message}` : error);
} finally {
  if (!kept) rmSync(directory, { recursive: true, force: true });
}
