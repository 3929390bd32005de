/** The session that a command names, by its directory or by a worker's configuration, as a store. */
import type { Checkpointer } from "../checkpoint/checkpointer.ts";
import type { PersistenceOptions, SessionConfig } from "../session/config.ts";
import type { Session } from "../session/session.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./errors.ts";
import { Progress } from "./progress.ts";

/** What --session or --config names; undefined when neither is given. */
export async function namedSession(context: Context): Promise<PersistenceOptions | SessionConfig | undefined> {
  const { session, config, db } = context;
  const given = Object.entries({ "--db": db, "--session": session, "--config": config }).filter(([, value]) => value);
  if ((session ?? config) === undefined) return undefined;
  if (given.length > 1) {
    throw new UsageError(`Name one store: ${given.map(([option]) => option).join(" and ")} are ${given.length}.`);
  }
  if (config === undefined) return { directory: session };
  const { readSessionConfig } = await import("../session/config.ts");
  return (await readSessionConfig(config)).config;
}

/** The session of `session:<directory>`, which may end in `?backend=sqlite` or `?backend=json`; undefined for another URL. */
export function sessionOfUrl(url: string): PersistenceOptions | undefined {
  const [, directory, backend] = /^session:(.*?)(?:\?backend=(sqlite|json))?$/s.exec(url) ?? [];
  if (directory === undefined) return undefined;
  if (directory === "") throw new UsageError("session: needs a directory, such as session:./data/session.");
  return { directory, ...(backend === "sqlite" || backend === "json" ? { backend } : {}) };
}

/** Opens a session as its worker. Problems that do no harm are notes. */
export async function openAsWorker(out: Context["out"], options: PersistenceOptions | SessionConfig): Promise<Session> {
  const { openSession } = await import("../session/session.ts");
  const progress = new Progress(out.json);
  const session = await openSession(options, {
    onProblem: (error) => out.note(error.message),
    onUpgrade: (done, total) => progress.update(done, total, indexed(done, total)),
  });
  progress.clear();
  return session;
}

/** How far an index has come. */
export function indexed(done: number, total: number): string {
  return `${done}/${total} archived messages indexed`;
}

/** A session's store that gives the session up when it is closed. */
export function storeOfSession(session: Session): Checkpointer {
  return new Proxy(session.checkpointer, {
    get(target, name) {
      if (name === "close" || name === Symbol.asyncDispose) return () => session.close();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
