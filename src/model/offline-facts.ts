/** What the offline model remembers: "my X is Y", read anew from the messages each time, since it has no state. */
import { textOf } from "../messages/construct.ts";
import type { Message } from "../messages/schema.ts";

export interface Fact {
  /** What it is about, as it was typed: "favourite colour". */
  subject: string;
  value: string;
}

const STATEMENT = /^(?:.*?\b)?(my|our|your|the user's)\s+(.+?)\s+(?:is|are)\s+(?:now\s+)?(.+)$/is;
const ASKS = /^(?:so\s+|and\s+|please\s+)*(?:what|who|when|where|which|how|why|do|does|did|can|could|is|are|tell)\b/i;
const ASKS_FOR = [
  // "What did I say my favourite colour was", "do you know what my name is"
  /\b(?:what|who|when|where|which|know|remember|recall)\b.*?\bmy\s+(.+?)\s+(?:is|was|are|were)$/is,
  // "What is my favourite colour", "what's my name"
  /\b(?:what|who|when|where|which)(?:['’]s|\s+(?:is|are|was|were))\s+my\s+(.+)$/is,
  // "Tell me my name", "do you remember my name"
  /\b(?:tell\s+me|know|remember|recall)\s+my\s+(.+)$/is,
];
/** A question in form only: "Can you remember that my name is Ada?" */
const ASKS_TO_REMEMBER = /\bremember\b.*\bmy\s.+\s(?:is|are)\s+\S/is;
/** Nobody states a fact in more, and the patterns take their time on long text. */
const LONGEST_SENTENCE = 500;

/** What a message tells: every "my X is Y" of it, in order. */
export function factsIn(text: string): Fact[] {
  return sentences(text).flatMap((sentence) => {
    if (isQuestion(sentence)) return [];
    return sentence.split(/,?\s+and\s+(?=my\s|our\s|your\s)/i).flatMap((clause) => {
      const [, , subject, value] = STATEMENT.exec(bare(clause)) ?? [];
      return subject && value ? [{ subject, value }] : [];
    });
  });
}

/** What a message asks for, as in "What is my X?"; undefined when it asks for nothing of the kind. */
export function subjectAsked(text: string): string | undefined {
  for (const sentence of sentences(text).filter(isQuestion)) {
    const question = bare(sentence.replace(/,?\s*please\W*$/i, ""));
    for (const pattern of ASKS_FOR) {
      const subject = pattern.exec(question)?.[1];
      if (subject) return subject;
    }
  }
  return undefined;
}

/** The latest value that the user, a tool or a summary gave for a subject, however it was spelt. */
export function recall(messages: readonly Message[], subject: string): string | undefined {
  const told = messages.filter((message) => message.role !== "assistant");
  return told.map((message) => factAbout(subject, textOf(message))).findLast((value) => value !== undefined);
}

/** The last value that a text gives for a subject. */
export function factAbout(subject: string, text: string): string | undefined {
  return factsIn(text).findLast((fact) => foldSpelling(fact.subject) === foldSpelling(subject))?.value;
}

/** British and American spellings come out the same. */
function foldSpelling(text: string): string {
  return text
    .normalize("NFC")
    .toLowerCase()
    .replace(/\s+/g, " ")
    .replace(/our/g, "or")
    .replace(/grey/g, "gray")
    .replace(/re\b/g, "er")
    .replace(/is(?=e|ing|ation)/g, "iz");
}

function sentences(text: string): string[] {
  return text.split(/(?<=[.!?])\s+|\n+/).filter((sentence) => sentence.length <= LONGEST_SENTENCE);
}

function isQuestion(sentence: string): boolean {
  return (sentence.trimEnd().endsWith("?") || ASKS.test(sentence.trim())) && !ASKS_TO_REMEMBER.test(sentence);
}

/** Without the punctuation at the end. */
function bare(sentence: string): string {
  return sentence.trim().replace(/[\s.!?;,]+$/, "");
}
