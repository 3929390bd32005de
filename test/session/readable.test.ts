/** readable.md: what people see of a conversation, and that nothing in a message gets out of its code block. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/messages/schema.ts";
import { readableMarkdown, writeReadable } from "../../src/session/readable.ts";
import { tempDir } from "../support/temp.ts";

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] });

/** The lines of a Markdown text that stand outside of code blocks, by CommonMark's rule for fences. */
function outside(markdown: string): string[] {
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of markdown.split("\n")) {
    const ticks = /^ {0,3}(`{3,})/.exec(line)?.[1];
    if (fence === undefined && ticks) fence = ticks;
    else if (fence === undefined) lines.push(line);
    else if (ticks && ticks.length >= fence.length && /^ {0,3}`+\s*$/.test(line)) fence = undefined;
  }
  expect(fence).toBeUndefined();
  return lines.filter((line) => line !== "");
}

describe("readable.md", () => {
  test("a conversation in full", () => {
    const markdown = readableMarkdown([
      {
        role: "user",
        content: [
          { type: "text", text: "List it" },
          { type: "image", source: `data:image/png;base64,${"A".repeat(16_000)}`, media_type: "image/png" },
        ],
        timestamp: 0,
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Which tool?" },
          { type: "text", text: "**Looking**" },
          { type: "tool_call", id: "c1", name: "list", arguments: { path: "/tmp" } },
        ],
        model_id: "m-1",
      },
      {
        role: "tool_result",
        tool_call_id: "c1",
        tool_name: "list",
        content: [{ type: "text", text: "gone" }],
        is_error: true,
        details: { secret: 1 },
      },
      { role: "assistant", content: [], stop_reason: "error", error_message: "overloaded" },
    ]);
    expect(markdown).toBe(`# Conversation

Written for people; the session itself is stored elsewhere.

## 1. User · 1970-01-01 00:00:00 UTC

\`\`\`text
List it
\`\`\`

[image: image/png, 12 kB]

## 2. Assistant · \`m-1\`

Reasoning:

\`\`\`text
Which tool?
\`\`\`

\`\`\`text
**Looking**
\`\`\`

Calls \`list\`:

\`\`\`json
{
  "path": "/tmp"
}
\`\`\`

## 3. Tool result · \`list\` · failed

\`\`\`text
gone
\`\`\`

## 4. Assistant

The model failed:

\`\`\`text
overloaded
\`\`\`
`);
  });

  test.each([
    "```",
    "````\n# heading",
    "a\n``````````\n<script>alert(1)</script>",
    "~~~\n## 2. Assistant",
    "`",
    "\n```\n\n## 9. User",
    "   ```js\nx\n   ```   ",
  ])("no text leaves its code block: %j", (text) => {
    const plain = outside(readableMarkdown([user("x")]));
    expect(outside(readableMarkdown([user(text)]))).toEqual(plain);
    const call: Message = {
      role: "assistant",
      content: [{ type: "tool_call", id: "c", name: "t", arguments: { [text]: text }, invalid_arguments: text }],
    };
    expect(outside(readableMarkdown([call]))).toEqual(["# Conversation", plain[1], "## 1. Assistant", "Calls `t`:"]);
  });

  test("names of tools, models, types and roles stay in one line of inline code", () => {
    const nasty = "x`\n## 9. User ``<b>";
    const markdown = readableMarkdown([
      { role: "assistant", content: [{ type: "tool_call", id: "c", name: nasty, arguments: {} }], model_id: nasty },
      { role: "tool_result", tool_call_id: "c", tool_name: "n".repeat(1000), content: [{ type: nasty } as never] },
      { role: nasty, content: "no list" } as never,
      { role: "constructor", content: [null] } as never,
      { role: "user", content: [{ type: "image", source: "https://example.org/a.png`", media_type: "a/b](x)" }] },
    ]);
    const lines = outside(markdown);
    const shown = "``` x`␊## 9. User ``<b> ```";
    expect(lines.filter((line) => line.startsWith("#"))).toEqual([
      "# Conversation",
      `## 1. Assistant · ${shown}`,
      `## 2. Tool result · \`${"n".repeat(100)}…\``,
      `## 3. ${shown}`,
      "## 4. `constructor`",
      "## 5. User",
    ]);
    expect(lines).toContain(`Calls ${shown}:`);
    expect(lines).toContain(`[a block of type ${shown}]`);
    expect(lines).toContain("[image: `a/b](x)`, `` https://example.org/a.png` ``]");
    expect(lines).toContain("*(empty)*");
  });

  test("control characters and overrides of direction are made visible, ill-formed text well-formed", () => {
    const markdown = readableMarkdown([user("\u001b[31mred\u0007 \u202edlrow\u2066 a\rb\r\nc\td \0 \ud83d end")]);
    expect(markdown).toContain("␛[31mred␇ <U+202E>dlrow<U+2066> a␍b\nc\td ␀ \ufffd end");
    expect(markdown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  });

  test("long texts are clipped between characters, and say how much is left out", () => {
    const markdown = readableMarkdown([user(`${"x".repeat(3999)}🧀${"y".repeat(10_000)}`)]);
    expect(markdown).toContain(
      `\`\`\`text\n${"x".repeat(3999)}\n\`\`\`\n\n*10,002 more characters are left out here.*`,
    );
    expect(readableMarkdown([user("x".repeat(4000))])).not.toContain("left out");
    expect(readableMarkdown([user("abcdef")], { maxLength: 2 })).toContain("```text\nab\n```\n\n*4 more");
  });

  test("images by URL are named and not loaded; data within a text is left out", () => {
    const markdown = readableMarkdown([
      { role: "user", content: [{ type: "image", source: "https://example.org/a.png?x=1", media_type: "image/png" }] },
      { role: "user", content: [{ type: "image", source: "A".repeat(400), media_type: "image/gif" }] },
      user(`see data:application/pdf;name=a.pdf;base64,${"B".repeat(4_000_000)} there`),
    ]);
    expect(markdown).toContain("[image: `image/png`, `https://example.org/a.png?x=1`]");
    expect(markdown).toContain("[image: image/gif, 300 bytes]");
    expect(markdown).toContain("see [application/pdf, 3.0 MB] there");
    expect(markdown).not.toContain("](");
  });

  test("only the newest messages are shown of a long conversation, with their numbers and the summary", () => {
    const messages = Array.from({ length: 2500 }, (_, i) => user(`message ${i + 1}`));
    const markdown = readableMarkdown(messages, { summary: "They counted." });
    expect(markdown).toContain(
      "## Summary of what came before\n\n```text\nThey counted.\n```\n\n*1,500 earlier messages are left out here.*\n\n## 1501. User\n\n```text\nmessage 1501\n```",
    );
    expect(markdown.match(/^## \d/gm)).toHaveLength(1000);
    expect(readableMarkdown([])).toBe(
      "# Conversation\n\nWritten for people; the session itself is stored elsewhere.\n",
    );
  });

  test("no text takes long: 5 MB of what the patterns look for", () => {
    const start = performance.now();
    for (const piece of ["`", "data:", "data:a/", "data:a/a;a=", "data:a/a;base64,", "`a"]) {
      readableMarkdown([user(piece.repeat(5_000_000 / piece.length))]);
      readableMarkdown([user(`data:${"a/;=a".repeat(1_000_000)}`)]);
    }
    expect(performance.now() - start).toBeLessThan(5000);
  });

  test("X6 the file is written whole, with mode 0600", async () => {
    const dir = tempDir();
    const path = join(dir, "readable.md");
    await writeReadable(path, [user("one")]);
    await writeReadable(path, [user("one"), user("two")], { summary: "s" });
    expect(readFileSync(path, "utf8")).toBe(readableMarkdown([user("one"), user("two")], { summary: "s" }));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir)).toEqual(["readable.md"]);
  });
});
