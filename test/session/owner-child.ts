/**
 * A worker that owns a session. argv: the directory, and "now" or "wait" (for a line on stdin) before it tries. It says "ready",
 * then "owned" or a JSON record of the error; it holds the session until stdin ends, or for ever with a third argument.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { SessionOwnedError } from "../../src/session/errors.ts";
import { SessionOwner } from "../../src/session/owner.ts";

const [, , directory = "", when, andSpawn] = process.argv;
const lines = createInterface({ input: process.stdin });
console.log("ready");
if (when === "wait") await once(lines, "line");
try {
  const owner = await SessionOwner.acquire(directory);
  if (andSpawn) {
    // A child of the owner that outlives it must not hold the session.
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" });
    console.log(String(child.pid));
  }
  console.log("owned");
  await once(lines, "close");
  await owner.release();
  console.log("released");
} catch (error) {
  if (!(error instanceof SessionOwnedError)) throw error;
  console.log(JSON.stringify({ code: error.code, pid: error.pid, host: error.host, since: error.since }));
}
process.exit();
