/** A private MariaDB or MySQL server in a directory of its own, found on PATH. It goes on when the process that started it ends. */
import { type ExecFileException, execFile, spawn } from "node:child_process";
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection } from "mysql2/promise";

const PLACES = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
const find = (name: string) => PLACES.map((place) => join(place, name)).find((path) => existsSync(path));

/** The server's program, if there is one on this machine. */
export const serverProgram = find("mariadbd") ?? find("mysqld");

/** What makes it quick: the data need not survive this machine. */
const FLAGS = [
  "--innodb-flush-log-at-trx-commit=2",
  "--loose-innodb-file-per-table=0",
  "--innodb-buffer-pool-size=64M",
  "--max-allowed-packet=64M",
  "--max-connections=300",
  "--skip-name-resolve",
  "--skip-log-bin",
  "--bind-address=127.0.0.1",
];

/** Starts a server on data in `directory`, made when there is none, and gives its port once it answers. */
export async function startServer(directory: string, flags: readonly string[] = [], port?: number): Promise<number> {
  if (!serverProgram) throw new Error("There is no mariadbd or mysqld on PATH.");
  const data = join(directory, "data");
  const user = process.getuid?.() === 0 ? ["--user=mysql"] : [];
  if (!existsSync(data)) await install(directory, data, user);
  const actual = port ?? (await freePort());
  const log = openSync(join(directory, "log"), "a");
  const args = [
    ...FLAGS,
    ...user,
    `--datadir=${data}`,
    // A server removes the temporary tables of others from a shared directory when it starts.
    `--tmpdir=${directory}`,
    `--socket=${join(directory, "sock")}`,
    `--port=${actual}`,
    ...flags,
  ];
  const child = spawn(serverProgram, ["--no-defaults", ...args], { detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.unref();
  writeFileSync(join(directory, "pid"), String(child.pid));
  await answers(directory, actual);
  return actual;
}

/** Ends the server of a directory, if there is one, and waits for its end. */
export async function stopServer(directory: string, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  const file = join(directory, "pid");
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, "utf8"));
  try {
    process.kill(pid, signal);
    // Signal 0 asks whether the process is there. A child that ended is only gone once it was waited for, so look at its state.
    while (process.kill(pid, 0) && isRunning(pid)) await sleep(20);
  } catch {
    // It has ended.
  }
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return !existsSync("/proc/self");
  }
}

async function install(directory: string, data: string, user: readonly string[]): Promise<void> {
  mkdirSync(directory, { recursive: true });
  // The server runs as another user when this is root.
  chmodSync(directory, 0o777);
  const installer = find("mariadb-install-db");
  const [program, args] = installer
    ? [installer, ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]]
    : [String(serverProgram), ["--no-defaults", "--initialize-insecure"]];
  await new Promise<void>((resolve, reject) => {
    const done = (error: ExecFileException | null) => (error ? reject(error) : resolve());
    execFile(program, [...args, ...user, `--datadir=${data}`, `--tmpdir=${directory}`], done);
  });
}

async function answers(directory: string, port: number): Promise<void> {
  for (const start = Date.now(); ; ) {
    try {
      const connection = await createConnection({ host: "127.0.0.1", port, user: "root" });
      await connection.end();
      return;
    } catch (error) {
      if (Date.now() - start > 30_000) {
        throw new Error(`The server does not answer: ${readFileSync(join(directory, "log"), "utf8")}`, {
          cause: error,
        });
      }
      await sleep(20);
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("There is no free port.");
  return address.port;
}
