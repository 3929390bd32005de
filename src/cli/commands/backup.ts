/** `everthread backup`: an online copy of the whole store. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { harmlessLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { EXIT } from "../errors.ts";
import { withStore } from "../store.ts";

export async function backup(context: Context, file: string): Promise<number> {
  const { out } = context;
  return await withStore(context, "read", async (store) => {
    await store.backup(file);
    const { size } = statSync(file);
    if (out.json) await out.record({ file: resolve(file), bytes: size });
    else await out.line(`Copied the store to ${harmlessLine(file)} (${size} bytes).`);
    return EXIT.ok;
  });
}
