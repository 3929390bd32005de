// Writes schema/message.schema.json, the JSON Schema of a message, from the built src/messages/schema.ts: run
// `npm run build-schema` after a change there. `--check` fails when the committed file is behind.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { toJsonSchema } from "@valibot/to-json-schema";
import { messageSchema } from "../dist/messages/schema.js";

const target = new URL("../schema/message.schema.json", import.meta.url);
// "output": of a pipe, the schema at its end. The checks say in code what that schema says already.
const { $schema, ...shape } = toJsonSchema(messageSchema, {
  target: "draft-2020-12",
  typeMode: "output",
  ignoreActions: ["check"],
});
const schema = {
  $schema,
  title: "Everthread message",
  description:
    "One record of a thread, as it is stored in message_json. Fields and blocks that are not named here are kept.",
  ...shape,
};
const text = `${JSON.stringify(schema, null, 2)}\n`;

if (!process.argv.includes("--check")) {
  mkdirSync(new URL(".", target), { recursive: true });
  writeFileSync(target, text);
} else if (!existsSync(target) || readFileSync(target, "utf8") !== text) {
  console.error("schema/message.schema.json is behind src/messages/schema.ts. Run `npm run build-schema`.");
  process.exitCode = 1;
}
