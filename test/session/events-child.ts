/** Records events until it is killed; says each number once it was recorded. argv: the file. */
import { writeSync } from "node:fs";
import { EventsFile } from "../../src/session/events-file.ts";

const file = new EventsFile(process.argv[2] ?? "");
for (let i = 0; ; i++) {
  file.write({ type: "tick", i, text: "x".repeat(500) });
  writeSync(1, `${i}\n`);
}
