/** The commands and their options. What a command does is loaded when it is run, so that --help is quick. */
import { readFileSync } from "node:fs";
import { Command, InvalidArgumentError, Option } from "commander";
import type { ChatOptions } from "./commands/chat.ts";
import type { CompactOptions } from "./commands/compact.ts";
import type { CopyCommandOptions } from "./commands/copy.ts";
import type { ExportOptions } from "./commands/export.ts";
import type { ForkOptions } from "./commands/fork.ts";
import type { HistoryOptions } from "./commands/history.ts";
import type { MigrateOptions } from "./commands/migrate.ts";
import type { RespondOptions } from "./commands/respond.ts";
import type { SearchCommandOptions } from "./commands/search.ts";
import type { ShowOptions } from "./commands/show.ts";
import type { ThreadsOptions } from "./commands/threads.ts";
import type { Context } from "./context.ts";
import type { Terminal } from "./terminal.ts";

/** @param done gets the exit code of the command that was run */
export function buildProgram(out: Terminal, done: (exitCode: number) => void): Command {
  const program = new Command("everthread")
    .description("Durable conversations for LLM agents: look at them, have them, move them.")
    .exitOverride()
    .configureOutput({
      // Errors are reported in one place, also as JSON.
      outputError: () => {},
      writeErr: (text) => out.note(text.trimEnd()),
    })
    .configureHelp({ showGlobalOptions: true })
    .version(version())
    .option(
      "--db <path|url>",
      "the store: a SQLite file, sqlite:<path>, postgres://…, mysql://… or memory: (Default: EVERTHREAD_DB)",
    )
    .option("--session <directory>", "the store: a session's directory, in place of --db")
    .option("--config <file>", "the store: the session that a worker's YAML file configures")
    .option("--json", "write JSON for programs: one document, or JSON Lines where output streams")
    .addHelpText("after", "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 waits on a person, 130 interrupted.");
  const context = (): Context => {
    const { db, session, config } = program.opts<{ db?: string; session?: string; config?: string }>();
    return { out, db, session, config };
  };

  withRunOptions(program.command("chat [message]"), "--approve <which>")
    .description("talk to an agent: one message as an argument or on stdin, or a session on a terminal")
    .option("--thread <id>", "the thread to go on with, or to begin (Default: a new one, and its id is printed)")
    .option(
      "--run-id <id>",
      "names the run, so that the same request tried again is not done twice (Default: a new id)",
    )
    .action(async (message: string | undefined, options: ChatOptions) => {
      done(await (await import("./commands/chat.ts")).chat(context(), message, options));
    });

  withRunOptions(program.command("compact [thread]"), "--approve <which>")
    .description("put a summary in place of the older part of a conversation, which is archived whole")
    .option("--instructions <text>", "what the model that writes the summary is told (Default: to keep what is needed)")
    .addOption(
      new Option("--keep-tokens <number>", "how much of the newest turns stays as it is (Default: 0)").argParser(
        wholeNumber,
      ),
    )
    .action(async (thread: string | undefined, options: CompactOptions) => {
      done(await (await import("./commands/compact.ts")).compact(context(), thread, options));
    });

  program
    .command("read-state <directory>")
    .description("a session's state as one JSON document, while its worker runs; changes nothing")
    .action(async (directory: string) => {
      done(await (await import("./commands/read-state.ts")).showState(context(), directory));
    });

  program
    .command("threads")
    .description("list the threads, the most recently changed first")
    .addOption(new Option("--limit <number>", "how many (Default: 50)").argParser(wholeNumber).conflicts("all"))
    .option("--all", "all of them")
    .option("--prefix <text>", "only those whose id begins so")
    .action(async (options: ThreadsOptions) => {
      done(await (await import("./commands/threads.ts")).threads(context(), options));
    });

  program
    .command("show [thread]")
    .description("show a conversation; without an id, the only one of the store")
    .option("--runs", "also its runs, and whether they completed")
    .addOption(new Option("--last <number>", "only so many messages, the latest (Default: all)").argParser(wholeNumber))
    .action(async (thread: string | undefined, options: ShowOptions) => {
      done(await (await import("./commands/show.ts")).show(context(), thread, options));
    });

  program
    .command("search <text>")
    .description("find what was said in the archives: literal text, from three characters on in any case")
    .option("--thread <id>", "only in this thread (Default: in every thread)")
    .addOption(new Option("--limit <number>", "how many hits (Default: 20)").argParser(wholeNumber))
    .addOption(new Option("--preview-bytes <number>", "how long a preview is (Default: 300)").argParser(wholeNumber))
    .addOption(new Option("--time-limit <ms>", "how long it may take (Default: 2000)").argParser(wholeNumber))
    .action(async (text: string, options: SearchCommandOptions) => {
      done(await (await import("./commands/search.ts")).search(context(), text, options));
    });

  program
    .command("archives [thread]")
    .description("what compactions set aside, with the summaries that took its place")
    .action(async (thread: string | undefined) => {
      done(await (await import("./commands/archives.ts")).archives(context(), thread));
    });

  program
    .command("archive")
    .description("look at one archive")
    .command("show <archive> [thread]")
    .description("show an archive whole, or with --source one message of it")
    .option("--source <id>", "only this message, as a search's hit names it")
    .addOption(new Option("--offset <bytes>", "with --source: where to begin (Default: 0)").argParser(wholeNumber))
    .action(async (archive: string, thread: string | undefined, options: { source?: string; offset?: number }) => {
      done(await (await import("./commands/archives.ts")).showArchive(context(), archive, thread, options));
    });

  program
    .command("prune [thread]")
    .description("remove the messages of old archives, for good; their summaries stay")
    .addOption(
      new Option("--keep <number>", "how many of the newest archives to keep; 0 removes nothing")
        .argParser(wholeNumber)
        .makeOptionMandatory(),
    )
    .action(async (thread: string | undefined, options: { keep: number }) => {
      done(await (await import("./commands/archives.ts")).prune(context(), thread, options));
    });

  program
    .command("fork <thread> <new-thread>")
    .description("begin a new thread with a copy of another's completed runs")
    .option("--after-run <run>", "the last run to copy (Default: the one that completed last)")
    .option("--metadata <json>", "an object to keep under extra.fork (Default: nothing)")
    .action(async (thread: string, newThread: string, options: ForkOptions) => {
      done(await (await import("./commands/fork.ts")).fork(context(), thread, newThread, options));
    });

  program
    .command("pending [thread]")
    .description("what waits on a person, in one thread or in all")
    .action(async (thread: string | undefined) => {
      done(await (await import("./commands/pending.ts")).pending(context(), thread));
    });

  withRunOptions(program.command("respond [thread]"), "--approve-tools <which>")
    .description("answer what a thread waits on, and go on with its run")
    .option("--approve", "let the tool run")
    .option("--deny [reason]", "don't; the model reads the reason")
    .option("--edit <json>", "let it run, with these arguments instead")
    .option("--answer <json>", "answer the agent's questions: an object from each question's key to the answer")
    .option("--yes", "confirm")
    .option("--no", "don't confirm")
    .option("--abort <reason>", "close the conversation: what it waits on is denied, and the model is not asked again")
    .option("--question <id>", "only if this is the question that waits (Default: whichever waits)")
    .action(async (thread: string | undefined, options: RespondOptions) => {
      done(await (await import("./commands/respond.ts")).respond(context(), thread, options));
    });

  program
    .command("export [threads...]")
    .description("write threads as JSON Lines")
    .option("--all", "every thread of the store")
    .option("-o, --output <file>", "a new file, for its owner only (Default: stdout)")
    .option("--force", "replace the file if it is there")
    .action(async (threads: string[], options: ExportOptions) => {
      done(await (await import("./commands/export.ts")).exportThreads(context(), threads, options));
    });

  program
    .command("import <file>")
    .description('read threads from JSON Lines, "-" for stdin; again is harmless')
    .action(async (file: string) => {
      done(await (await import("./commands/import.ts")).importThreads(context(), file));
    });

  program
    .command("copy <from> <to> [threads...]")
    .description("copy threads from one store to another, of whichever kinds; again goes on, or is harmless")
    .option("--no-verify", "don't compare with the source once it is written")
    .action(async (from: string, to: string, threads: string[], options: CopyCommandOptions) => {
      done(await (await import("./commands/copy.ts")).copy(context(), from, to, threads, options));
    });

  program
    .command("backup <file>")
    .description("copy the whole store to a new file, while it is in use")
    .action(async (file: string) => {
      done(await (await import("./commands/backup.ts")).backup(context(), file));
    });

  program
    .command("history <file> [action] [argument]")
    .description("the log of what is remembered: list (the default), show <memory>, export, import <file>")
    .option("--memory <id>", "list: only changes to this memory")
    .option("--actor <id>", "list: only changes by this actor")
    .option("--event <word>", "list: only this event, such as ADD")
    .option("--since <time>", "list: only changes at this time or later")
    .option("--until <time>", "list: only changes before this time")
    .addOption(
      new Option("--limit <number>", "list: how many, the latest (Default: 50)")
        .argParser(wholeNumber)
        .conflicts("all"),
    )
    .option("--all", "list: all of them")
    .option("-o, --output <file>", "export: a new file, for its owner only (Default: stdout)")
    .option("--force", "export: replace the file if it is there")
    .action(async (file: string, action: string | undefined, argument: string | undefined, options: HistoryOptions) => {
      done(await (await import("./commands/history.ts")).history(context(), file, action, argument, options));
    });

  program
    .command("doctor")
    .description("look for damage and loose ends; changes nothing")
    .action(async () => {
      done(await (await import("./commands/doctor.ts")).doctor(context()));
    });

  program
    .command("migrate [url]")
    .description("print the SQL that brings a server's tables up to date, or run it")
    .option("--apply", "run it, under a lock; of several that do so at once, one does it")
    .addOption(new Option("--check", "print nothing, and fail when something is to be done").conflicts("apply"))
    .option("--history", "the tables of a memory history, not those of threads")
    .action(async (url: string | undefined, options: MigrateOptions) => {
      done(await (await import("./commands/migrate.ts")).migrate(context(), url, options));
    });

  return program;
}

/** What `chat` and `respond` share: who answers, and with which tools. */
function withRunOptions(command: Command, approve: string): Command {
  return command
    .option(
      "--model <model>",
      "offline, anthropic:<id>, openai:<id> or openai-compatible:<id> (Default: EVERTHREAD_MODEL, else offline)",
    )
    .option("--base-url <url>", "where the model's API is (Default: the provider's)")
    .option("--system <text>", "the system prompt (Default: none)")
    .option("--tools <module>", "an ES module that exports tools, and may export approve and middleware")
    .option(approve, "tools that need a person: all, none, or names (Default: the module's approve, else all)");
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

function version(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
