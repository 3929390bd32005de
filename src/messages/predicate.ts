/**
 * A fast yes or no from a valibot schema. Valibot's own `is` builds a result and copies every object on the way, which
 * costs more than parsing the JSON did; here the schema is turned into plain functions once. It stays the one definition
 * of the shape: a kind of schema that isn't known below is refused at once, and what is wrong with a value is still said
 * by valibot.
 */
import type * as v from "valibot";

export type Predicate = (value: unknown) => boolean;

/** What of valibot's schemas and actions is read here; which of it is there depends on `type`. */
interface Part {
  readonly type: string;
  readonly pipe?: readonly Part[];
  readonly literal?: unknown;
  readonly wrapped?: Part;
  readonly item?: Part;
  readonly entries?: Readonly<Record<string, Part>>;
  readonly options?: readonly Part[];
  readonly key?: string;
  readonly requirement?: unknown;
}

/**
 * Whether a value is of the schema, for schemas that change nothing of what they take.
 *
 * @throws TypeError for a kind of schema or action that is not known here
 */
export function predicateOf(schema: v.GenericSchema): Predicate {
  return compile(schema as unknown as Part);
}

function compile(part: Part): Predicate {
  // Valibot keeps the schema that a pipe begins with as the pipe's first item.
  if (part.pipe) return all(part.pipe.map(compile));
  switch (part.type) {
    case "unknown":
      return () => true;
    case "string":
      return (value) => typeof value === "string";
    case "number":
      return (value) => typeof value === "number" && !Number.isNaN(value);
    case "boolean":
      return (value) => typeof value === "boolean";
    case "literal": {
      const { literal } = part;
      return (value) => value === literal;
    }
    case "optional": {
      const wrapped = compile(given(part, "wrapped"));
      return (value) => value === undefined || wrapped(value);
    }
    case "nullish": {
      const wrapped = compile(given(part, "wrapped"));
      return (value) => value === undefined || value === null || wrapped(value);
    }
    case "array":
      return arrayOf(compile(given(part, "item")));
    case "loose_object":
      return looseObject(given(part, "entries"));
    case "union":
    case "variant": // A variant's options each name their kind in a field, so the first fitting one is the only one.
      return any(given(part, "options").map(compile));
    case "check":
      return given(part, "requirement") as Predicate;
    case "regex": {
      const pattern = given(part, "requirement") as RegExp;
      return (value) => pattern.test(value as string);
    }
    default:
      throw new TypeError(`A predicate can't be made of a schema of type ${part.type}.`);
  }
}

function given<Key extends keyof Part>(part: Part, key: Key): NonNullable<Part[Key]> {
  const value = part[key];
  if (value === undefined || value === null) throw new TypeError(`A schema of type ${part.type} has no ${key}.`);
  return value;
}

function looseObject(entries: Readonly<Record<string, Part>>): Predicate {
  const fields = Object.entries(entries).map(([name, part]) => ({
    name,
    test: compile(part),
    mayBeAbsent: part.type === "optional" || part.type === "nullish",
  }));
  return (value) => {
    if (typeof value !== "object" || value === null) return false;
    const object = value as Record<string, unknown>;
    for (const { name, test, mayBeAbsent } of fields) {
      const field = object[name];
      if (field === undefined && !(name in object)) {
        if (!mayBeAbsent) return false;
      } else if (!test(field)) return false;
    }
    return true;
  };
}

function arrayOf(item: Predicate): Predicate {
  return (value) => {
    if (!Array.isArray(value)) return false;
    // Not every(), which passes over holes.
    for (let i = 0; i < value.length; i++) if (!item(value[i])) return false;
    return true;
  };
}

function all(predicates: readonly Predicate[]): Predicate {
  return (value) => predicates.every((test) => test(value));
}

function any(predicates: readonly Predicate[]): Predicate {
  return (value) => predicates.some((test) => test(value));
}
