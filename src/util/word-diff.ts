/** The difference of two texts by words: what stays, what goes and what comes. */

export interface WordChange {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Texts of more words than this, multiplied, are taken as wholly different: finding out would take too long. */
const MOST_COMPARISONS = 4_000_000;

/** The texts joined are `before` without what was added, and `after` without what was removed. */
export function wordDiff(before: string, after: string): WordChange[] {
  const a = wordsOf(before);
  const b = wordsOf(after);
  const changes: WordChange[] = [];
  const add = (kind: WordChange["kind"], text: string) => {
    const last = changes.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text !== "") changes.push({ kind, text });
  };
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) add("same", a[start++] ?? "");
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [oldWords, newWords] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  for (const { kind, text } of middle(oldWords, newWords)) add(kind, text);
  for (const word of a.slice(a.length - end)) add("same", word);
  return changes;
}

/** Words, and what stands between them. */
function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}_]+|\s+|[^\p{L}\p{N}\p{M}_\s]/gu) ?? [];
}

/** By the longest common run of words. */
function middle(a: readonly string[], b: readonly string[]): WordChange[] {
  const removed = (from: number, to: number) => ({ kind: "removed" as const, text: a.slice(from, to).join("") });
  const added = (from: number, to: number) => ({ kind: "added" as const, text: b.slice(from, to).join("") });
  const width = b.length + 1;
  if (a.length * b.length > MOST_COMPARISONS) return [removed(0, a.length), added(0, b.length)];
  // lengths[i, j]: how many words a from i and b from j have in common.
  const lengths = new Uint32Array((a.length + 1) * width);
  const common = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? common(i + 1, j + 1) + 1 : Math.max(common(i + 1, j), common(i, j + 1));
    }
  }
  const changes: WordChange[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const from = i;
    while (i < a.length && j < b.length && a[i] === b[j]) [i, j] = [i + 1, j + 1];
    changes.push({ kind: "same", text: a.slice(from, i).join("") });
    const [goneFrom, comeFrom] = [i, j];
    // Everything that goes before everything that comes, up to the next word in common.
    while ((i < a.length || j < b.length) && !(i < a.length && j < b.length && a[i] === b[j])) {
      if (i < a.length && (j === b.length || common(i + 1, j) >= common(i, j + 1))) i++;
      else j++;
    }
    changes.push(removed(goneFrom, i), added(comeFrom, j));
  }
  return changes;
}
