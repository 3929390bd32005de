/** An object of a file, read field by field: a fault names its place, and what is not asked for is kept. */
import { type Fields, fieldsOf, itemsOf } from "./raw.ts";

export class ObjectReader {
  readonly #place: string;
  readonly #fields: Fields;

  /** @param place how an error names it: `threads["a"].messages[3]` @throws Error when the text is not an object's */
  constructor(text: string, place: string) {
    this.#place = place;
    try {
      this.#fields = fieldsOf(text);
    } catch (cause) {
      throw new Error(`${place} ${(cause as Error).message}`, { cause });
    }
  }

  /** What was not asked for. */
  get rest(): Fields {
    return this.#fields;
  }

  /** A value's text; undefined when it is not there. */
  text(name: string): string | undefined {
    const text = this.#fields.get(name);
    this.#fields.delete(name);
    return text;
  }

  /** The text of an object; undefined when it is not there, or null. */
  object(name: string): string | undefined {
    const text = this.text(name);
    if (text === undefined || text === "null") return undefined;
    return text.startsWith("{") ? text : this.#refuse(name, "must be an object.");
  }

  list(name: string): string[] {
    const text = this.text(name) ?? "[]";
    return text.startsWith("[") ? itemsOf(text) : this.#refuse(name, "must be an array.");
  }

  string(name: string): string {
    return this.stringOrNull(name) ?? this.#refuse(name, "must be a string.");
  }

  stringOrNull(name: string): string | null {
    const value: unknown = JSON.parse(this.text(name) ?? "null");
    return value === null || typeof value === "string" ? value : this.#refuse(name, "must be a string or null.");
  }

  /** A whole number. @param least the least that it may be */
  whole(name: string, least: number): number {
    const value: unknown = JSON.parse(this.text(name) ?? "null");
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
    return this.#refuse(name, `must be a whole number of ${least} or more.`);
  }

  date(name: string): Date {
    return this.dateOrNull(name) ?? this.#refuse(name, "must be a time in ISO 8601.");
  }

  dateOrNull(name: string): Date | null {
    const value = this.stringOrNull(name);
    if (value === null) return null;
    const date = new Date(value);
    return Number.isNaN(date.getTime()) ? this.#refuse(name, "must be a time in ISO 8601.") : date;
  }

  #refuse(name: string, problem: string): never {
    throw new Error(`${this.#place}.${name} ${problem}`);
  }
}
