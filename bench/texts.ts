/** Texts for measures of search: made-up words, common and rare ones as in a language, the same ones each time. */

const STARTS = "b c d f g h l m n p r s t v w br ch cl cr dr fl fr gr pl pr sh sl sp st str th tr wh".split(" ");
const VOWELS = "a e i o u a e i o e ai ea ee ie oo ou".split(" ");
const ENDS = ["", "", "", ..."d l m n r s t ck ll nd ng nt rd rs rt ss st".split(" ")];
const WORDS = 20_000;

export class Texts {
  #seed: number;
  readonly #words: string[];

  constructor(seed: number) {
    this.#seed = seed;
    this.#words = Array.from({ length: WORDS }, (_, rank) => this.#word(rank < 200 ? 1 : 1 + this.below(3)));
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#seed / 2 ** 32) * limit);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** Words, numbers and marks, so many characters of them. */
  text(length: number): string {
    const parts: string[] = [];
    for (let have = 0; have < length; ) {
      const part = this.below(20) === 0 ? `${this.below(10_000)}` : this.#common();
      const said = this.below(12) === 0 ? `${part}. ${this.#common().replace(/^./, (c) => c.toUpperCase())}` : part;
      parts.push(said);
      have += said.length + 1;
    }
    return parts.join(" ").slice(0, length);
  }

  /** The more common, the lower its rank, as in Zipf's law. */
  #common(): string {
    const share = this.below(2 ** 30) / 2 ** 30;
    return this.#words[Math.floor(WORDS ** share) - 1] ?? "";
  }

  #word(syllables: number): string {
    return Array.from({ length: syllables }, () => this.pick(STARTS) + this.pick(VOWELS) + this.pick(ENDS)).join("");
  }
}
