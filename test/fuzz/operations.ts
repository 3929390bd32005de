/** What the sequences are made of: every call of the contract, with arguments that meet each other often. */
import * as fc from "fast-check";
import type { JsonObject, JsonValue } from "../../src/messages/json.ts";
import { IDS, json, LONG_IDS, object, text } from "./texts.ts";

/** A place in a thread's log, as every engine can find it. */
export type Place = "none" | "start" | "far" | { back: number };
/** An index into the names of the sequence. */
export type Index = number;
/** The run that something belongs to; null for none. */
export type MaybeRun = Index | null;

export interface MessageDraft {
  role: "user" | "assistant" | "call" | "tool_result";
  text: string;
  run: MaybeRun;
  json: JsonObject;
}

export interface ImportDraft {
  messages: { draft: MessageDraft; day: number }[] | undefined;
  runs: { run: Index; day: number; completed: boolean; seq: number | null }[] | undefined;
  parent: Index | undefined;
  extra: JsonObject | undefined;
  pending: { question: Index; run: MaybeRun } | null | undefined;
  answers: { question: Index; run: MaybeRun; answer: JsonValue }[] | undefined;
  archives:
    | { count: number; kept: number; pruned: boolean; text: string; system: string | null; extra: JsonObject }[]
    | undefined;
}

type OnThread<Kind extends string, Fields = object> = { kind: Kind; thread: Index } & Fields;

export type Change =
  | OnThread<"append", { messages: MessageDraft[]; expected: Place }>
  | OnThread<"saveExtra", { extra: JsonObject; expected: Place }>
  | OnThread<"claimRun" | "markRunComplete", { run: Index }>
  | OnThread<"fork", { target: Index; run: Index; metadata: JsonObject | undefined }>
  | OnThread<"savePendingRequest", { question: Index | null; run: MaybeRun; details: JsonObject; expected: Place }>
  | OnThread<"clearPendingRequestIfMatches", { question: Index; run: MaybeRun }>
  | OnThread<"answerPending", { question: Index; run: MaybeRun; answer: JsonValue; next: Index | null | undefined }>
  | OnThread<"saveHitlAnswer", { question: Index; run: MaybeRun; answer: JsonValue }>
  | OnThread<"clearHitlAnswers", { questions: Index[] | undefined; run: MaybeRun }>
  | OnThread<"importThread", { part: ImportDraft; expected: Place }>
  | OnThread<"deleteThread">
  | OnThread<"compact", { upTo: Place; summary: string; system: string | null | undefined; expected: Place }>;

export type Op =
  | Change
  | OnThread<"load", { after: Place }>
  | OnThread<"snapshot", { run: Index }>
  | OnThread<"contextAfter", { run: Index }>
  | OnThread<"loadPending" | "listHitlAnswers">
  | OnThread<"loadHitlAnswer", { question: Index; run: MaybeRun }>
  | OnThread<"listMessages", { after: Place; limit: number }>
  | OnThread<"listRuns", { after: Index | undefined; limit: number }>
  | { kind: "listThreads"; prefix: string | undefined; limit: number }
  | OnThread<"prune", { keep: number }>
  | OnThread<"listArchives", { after: number | undefined; limit: number }>
  | OnThread<"readArchive", { archive: number }>
  | OnThread<"fetch", { archive: number; source: Place; offset: number; limit: number }>
  | OnThread<"search", { query: string; limit: number; previewBytes: number }>
  | { kind: "searchAll"; query: string }
  | { kind: "reopen" }
  /** Calls made at once, without waiting for one another. */
  | { kind: "atOnce"; changes: Change[] };

export interface Sequence {
  threads: string[];
  runs: string[];
  questions: string[];
  ops: Op[];
}

export const THREADS = 3;
const RUNS = 3;
const QUESTIONS = 2;

const thread = fc.nat(THREADS - 1);
const run = fc.nat(RUNS - 1);
const question = fc.nat(QUESTIONS - 1);
const maybeRun = fc.option(run);
const back = fc.record({ back: fc.nat(4) });
const place: fc.Arbitrary<Place> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Place>("none") },
  { weight: 4, arbitrary: fc.constant<Place>({ back: 0 }) },
  { weight: 1, arbitrary: fc.constantFrom<Place>("start", "far") },
  { weight: 1, arbitrary: back },
);
const upTo: fc.Arbitrary<Place> = fc.oneof(
  { weight: 8, arbitrary: back },
  { weight: 1, arbitrary: fc.constantFrom<Place>("start", "far") },
);
const limit = fc.oneof(fc.nat(3), fc.constant(10_000));
/** What is said and what is looked for is made of few letters, so that searches find something. */
const letters = fc.string({
  unit: fc.constantFrom("a", "A", "b", "ß", "s", "é", "e", "\u0301", "中", "😀", " ", "\0"),
  maxLength: 8,
});
const said = fc.oneof(letters, text);
const draft: fc.Arbitrary<MessageDraft> = fc.record({
  role: fc.constantFrom("user", "assistant", "call", "tool_result"),
  text: said,
  run: maybeRun,
  json: object,
});

const part: fc.Arbitrary<ImportDraft> = fc.record({
  messages: fc.option(fc.array(fc.record({ draft, day: fc.nat(3000) }), { maxLength: 4 }), { nil: undefined }),
  runs: fc.option(
    fc.uniqueArray(
      fc.record({ run, day: fc.nat(3000), completed: fc.boolean(), seq: fc.option(fc.integer({ min: 1, max: 4 })) }),
      {
        maxLength: 3,
        selector: (one) => one.run,
      },
    ),
    { nil: undefined },
  ),
  parent: fc.option(thread, { nil: undefined }),
  extra: fc.option(object, { nil: undefined }),
  pending: fc.option(fc.option(fc.record({ question, run: maybeRun })), { nil: undefined }),
  answers: fc.option(fc.array(fc.record({ question, run: maybeRun, answer: json }), { maxLength: 3 }), {
    nil: undefined,
  }),
  archives: fc.option(
    fc.array(
      fc.record({
        count: fc.nat(3),
        kept: fc.nat(3),
        pruned: fc.boolean(),
        text: said,
        system: fc.option(text),
        extra: object,
      }),
      { maxLength: 3 },
    ),
    { nil: undefined, freq: 2 },
  ),
});

const on = (kind: Op["kind"], fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record({ kind: fc.constant(kind), thread, ...fields });

interface Weighted<T> {
  weight: number;
  arbitrary: fc.Arbitrary<T>;
}

function changes(withArchives: boolean): Weighted<Change>[] {
  const parts = withArchives ? part : part.map((one) => ({ ...one, archives: undefined }));
  return [
    { weight: 8, arbitrary: on("append", { messages: fc.array(draft, { maxLength: 4 }), expected: place }) },
    { weight: 2, arbitrary: on("saveExtra", { extra: object, expected: place }) },
    { weight: 3, arbitrary: on("claimRun", { run }) },
    { weight: 3, arbitrary: on("markRunComplete", { run }) },
    { weight: 2, arbitrary: on("fork", { target: thread, run, metadata: fc.option(object, { nil: undefined }) }) },
    {
      weight: 2,
      arbitrary: on("savePendingRequest", {
        question: fc.option(question),
        run: maybeRun,
        details: object,
        expected: place,
      }),
    },
    { weight: 1, arbitrary: on("clearPendingRequestIfMatches", { question, run: maybeRun }) },
    {
      weight: 2,
      arbitrary: on("answerPending", {
        question,
        run: maybeRun,
        answer: json,
        next: fc.option(fc.option(question), { nil: undefined }),
      }),
    },
    { weight: 1, arbitrary: on("saveHitlAnswer", { question, run: maybeRun, answer: json }) },
    {
      weight: 1,
      arbitrary: on("clearHitlAnswers", {
        questions: fc.option(fc.array(question, { maxLength: 2 }), { nil: undefined }),
        run: maybeRun,
      }),
    },
    { weight: 2, arbitrary: on("importThread", { part: parts, expected: place }) },
    { weight: 1, arbitrary: on("deleteThread", {}) },
    ...(withArchives
      ? [
          {
            weight: 5,
            arbitrary: on("compact", {
              upTo,
              summary: said,
              system: fc.option(fc.option(text), { nil: undefined }),
              expected: place,
            }),
          },
        ]
      : []),
  ] as Weighted<Change>[];
}

function reads(withArchives: boolean): Weighted<Op>[] {
  const archive = fc.integer({ min: 1, max: 3 });
  return [
    { weight: 2, arbitrary: on("load", { after: place }) },
    { weight: 1, arbitrary: on("snapshot", { run }) },
    { weight: 1, arbitrary: on("loadPending", {}) },
    { weight: 1, arbitrary: on("listHitlAnswers", {}) },
    { weight: 1, arbitrary: on("loadHitlAnswer", { question, run: maybeRun }) },
    { weight: 1, arbitrary: on("listMessages", { after: place, limit }) },
    { weight: 1, arbitrary: on("listRuns", { after: fc.option(run, { nil: undefined }), limit }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("listThreads"),
        prefix: fc.option(fc.constantFrom("", "t", "T", "é", "_", "%", "e"), { nil: undefined }),
        limit,
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: "reopen" }) },
    ...(withArchives
      ? [
          { weight: 2, arbitrary: on("prune", { keep: fc.nat(2) }) },
          { weight: 1, arbitrary: on("contextAfter", { run }) },
          { weight: 1, arbitrary: on("listArchives", { after: fc.option(fc.nat(3), { nil: undefined }), limit }) },
          { weight: 1, arbitrary: on("readArchive", { archive }) },
          {
            weight: 1,
            arbitrary: on("fetch", {
              archive,
              source: upTo,
              offset: fc.nat(40),
              limit: fc.integer({ min: 16, max: 40 }),
            }),
          },
          {
            weight: 2,
            arbitrary: on("search", { query: letters, limit, previewBytes: fc.integer({ min: 16, max: 60 }) }),
          },
          { weight: 1, arbitrary: fc.record({ kind: fc.constant("searchAll"), query: letters }) },
        ]
      : []),
  ] as Weighted<Op>[];
}

/**
 * @param options.archives whether archives are made use of
 * @param options.atOnce whether several calls are made at once: only where they take effect in the order of the calls
 */
export function sequences(options: { archives: boolean; atOnce: boolean }): fc.Arbitrary<Sequence> {
  const some = changes(options.archives);
  // To add nothing is to read, and what is read while others write may be from before or after them.
  const isChange = (change: Change) => change.kind !== "append" || change.messages.length > 0;
  const atOnce = fc.record({
    kind: fc.constant("atOnce" as const),
    changes: fc.array(fc.oneof(...some).filter(isChange), { minLength: 2, maxLength: 6 }),
  });
  const op = fc.oneof(
    ...(some as Weighted<Op>[]),
    ...reads(options.archives),
    ...(options.atOnce ? [{ weight: 3, arbitrary: atOnce }] : []),
  ) as fc.Arbitrary<Op>;
  const names = (count: number, from: readonly string[]) =>
    fc.uniqueArray(fc.constantFrom(...from), { minLength: count, maxLength: count });
  return fc.record({
    threads: names(THREADS, [...IDS, ...LONG_IDS]),
    runs: names(RUNS, IDS),
    questions: names(QUESTIONS, [...IDS, ...LONG_IDS]),
    ops: fc.array(op, { maxLength: 40, size: "max" }),
  });
}
