/** `everthread read-state`: a session as one JSON document, the same for both backends. */
import { readState } from "../../session/read-state.ts";
import { jsonLine } from "../../util/text.ts";
import type { Context } from "../context.ts";
import { EXIT } from "../errors.ts";

export async function showState({ out }: Context, directory: string): Promise<number> {
  const state = await readState(directory);
  // For people it is JSON as well, with the lines of one that can be read.
  if (out.json) await out.record(state);
  else await out.line(JSON.stringify(JSON.parse(jsonLine(state)), null, 2));
  return EXIT.ok;
}
