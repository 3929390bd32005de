/** Values that a program might hand in by mistake or on purpose, each with what must be stored of it, or that it is refused. */
import * as fc from "fast-check";
import { type JsonObject, type JsonValue, setOwn } from "../../src/messages/json.ts";
import { illFormed, text } from "./texts.ts";

export interface Hostile {
  /** Made anew for every call, since some can be read but once. */
  make: () => unknown;
  /** What is stored; undefined when it is not there at all. Absent when it must be refused. */
  stored?: { value: JsonValue | undefined };
  /** How many containers are within one another. */
  depth: number;
  /** For reports. */
  what: string;
}

/** Containers within one another that are taken, from the value that is handed in. */
export const MOST_CONTAINERS = 501;

class Point {
  x = 1;
}

const refused = (what: string, make: () => unknown): Hostile => ({ what, make, depth: 1 });

function withKey(key: string | symbol, descriptor: PropertyDescriptor): object {
  return Object.defineProperty({}, key, { enumerable: true, configurable: true, ...descriptor });
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function throwing(trap: keyof ProxyHandler<object>): object {
  return new Proxy(
    { a: 1 },
    {
      [trap]() {
        throw new Error("no entry");
      },
    },
  );
}

function cycle(): unknown {
  const one: { other?: unknown } = {};
  one.other = [{ one }];
  return one;
}

/** Values that are no JSON. */
const REFUSED: Hostile[] = [
  refused("a BigInt", () => 2n ** 64n),
  refused("NaN", () => Number.NaN),
  refused("Infinity", () => Number.POSITIVE_INFINITY),
  refused("a symbol", () => Symbol("s")),
  refused("a function", () => () => 1),
  refused("a Date", () => new Date(0)),
  refused("an invalid Date", () => new Date(Number.NaN)),
  refused("a Map", () => new Map([["a", 1]])),
  refused("a Set", () => new Set([1])),
  refused("a RegExp", () => /a/),
  refused("a Promise", () => Promise.resolve(1)),
  refused("an Error", () => new Error("e")),
  refused("bytes", () => Uint8Array.of(255, 254)),
  refused("a Buffer", () => Buffer.from("bytes")),
  refused("an ArrayBuffer", () => new ArrayBuffer(2)),
  refused("a boxed string", () => new String("boxed")),
  refused("a boxed number", () => new Number(1)),
  refused("a class instance", () => new Point()),
  refused("a class instance that is frozen", () => Object.freeze(new Point())),
  refused("an object that inherits", () => Object.create({ a: 1 })),
  refused("a tagged object", () => withKey(Symbol.toStringTag, { value: "Tag" })),
  refused("a key that is a symbol", () => withKey(Symbol("s"), { value: 1 })),
  refused("an array with a hole", () => Object.assign([], { 0: 1, 2: 3 })),
  refused("an array that is all holes", () => new Array(3)),
  refused("undefined in an array", () => [undefined]),
  refused("a getter that throws", () =>
    withKey("a", {
      get() {
        throw new Error("no entry");
      },
    }),
  ),
  refused("a getter that throws no error", () =>
    withKey("a", {
      get() {
        throw undefined;
      },
    }),
  ),
  refused("a revoked proxy", revoked),
  refused("a proxy that hides its keys", () => throwing("ownKeys")),
  refused("a proxy that hides its values", () => throwing("get")),
  refused("a proxy that hides its prototype", () => throwing("getPrototypeOf")),
  refused("a cycle", cycle),
  refused("two keys that would become one", () => ({ "k\ud83d": 1, "k\ufffd": 2 })),
];

/** Values that are JSON, in some disguise. */
const KEPT: [what: string, make: () => unknown, stored: JsonValue, depth: number][] = [
  ["-0", () => -0, 0, 0],
  ["a frozen object", () => Object.freeze({ a: 1 }), { a: 1 }, 1],
  ["an object without a prototype", () => Object.assign(Object.create(null), { a: 1 }), { a: 1 }, 1],
  ["a getter", () => withKey("a", { get: () => 1 }), { a: 1 }, 1],
  ["what is not enumerable", () => withKey("a", { value: 1, enumerable: false }), {}, 1],
  ["a proxy", () => new Proxy({ a: [1] }, {}), { a: [1] }, 2],
  ["a proxy of an array", () => new Proxy([1, 2], {}), [1, 2], 1],
  ["an array with a property", () => Object.assign([1], { a: 2 }), [1], 1],
  ["undefined as a property", () => ({ a: undefined, b: 1 }), { b: 1 }, 1],
  ["arguments that repeat", () => ((shared) => [shared, shared])({ a: 1 }), [{ a: 1 }, { a: 1 }], 2],
  ["a long text", () => "x\0é😀".repeat(20_000), "x\0é😀".repeat(20_000), 0],
];

const leaf: fc.Arbitrary<Hostile> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...REFUSED) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...KEPT).map(([what, make, value, depth]) => ({ what, make, stored: { value }, depth })),
  },
  { weight: 2, arbitrary: text.map((value) => ({ what: "text", make: () => value, stored: { value }, depth: 0 })) },
  {
    weight: 2,
    arbitrary: illFormed.map((value) => ({
      what: "ill-formed text",
      make: () => value,
      stored: { value: value.replaceAll(/[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g, mended) },
      depth: 0,
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(1e308, -1e308, 5e-324, 2 ** 53 + 2, 2 ** 64, 0.1, -1.5, true, false, null)
      .map((value) => ({
        what: String(value),
        make: () => value,
        stored: { value },
        depth: 0,
      })),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(10, 495, 496, 497, 498, 499, 500, 501, 502, 5000).map((levels) => ({
      what: `${levels} levels`,
      make: () => nested(levels),
      stored: { value: nested(levels) },
      depth: levels,
    })),
  },
);

function mended(found: string): string {
  return found.length === 2 ? found : "\ufffd";
}

function nested(levels: number): JsonValue {
  let value: JsonValue = [];
  for (let i = 1; i < levels; i++) value = [value];
  return value;
}

const KEYS = [
  "a",
  "__proto__",
  "constructor",
  "prototype",
  "10",
  "2",
  "toJSON",
  "",
  "k\0",
  "é",
  "e\u0301",
  "💥",
  "length",
];

/** A value with something hostile in it. */
export const hostile: fc.Arbitrary<Hostile> = fc.letrec<{ value: Hostile }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }).map(listOf),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), tie("value")), { maxLength: 3, selector: ([key]) => key })
      .map(objectOf),
  ),
})).value;

/** As {@link hostile}, an object at the top. */
export const hostileObject: fc.Arbitrary<Hostile & { stored?: { value: JsonObject } }> = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), hostile), { maxLength: 3, selector: ([key]) => key })
  .map(objectOf);

function listOf(items: Hostile[]): Hostile {
  const values = items.map(({ stored }) => stored?.value);
  return {
    what: `[${items.map(({ what }) => what).join(", ")}]`,
    make: () => items.map(({ make }) => make()),
    ...(values.every((value) => value !== undefined) && { stored: { value: values } }),
    depth: 1 + Math.max(0, ...items.map(({ depth }) => depth)),
  };
}

function objectOf(entries: [string, Hostile][]): Hostile & { stored?: { value: JsonObject } } {
  const value: JsonObject = {};
  for (const [key, { stored }] of entries) if (stored?.value !== undefined) setOwn(value, key, stored.value);
  return {
    what: `{${entries.map(([key, { what }]) => `${key}: ${what}`).join(", ")}}`,
    make: () => {
      const object: { [key: string]: unknown } = {};
      for (const [key, { make }] of entries) setOwn(object, key, make());
      return object;
    },
    ...(entries.every(([, { stored }]) => stored) && { stored: { value } }),
    depth: 1 + Math.max(0, ...entries.map(([, { depth }]) => depth)),
  };
}

export interface HostileId {
  id: unknown;
  /** Whether it is an id of at most 64, of at most 255 characters, or none. */
  fits: 64 | 255 | 0;
}

const long = (count: number, of: string, fits: HostileId["fits"]): HostileId => ({ id: of.repeat(count), fits });

/** What is handed in as an id. */
export const hostileId: fc.Arbitrary<HostileId> = fc.oneof(
  fc.constantFrom<HostileId>(
    long(64, "r", 64),
    long(64, "😀", 64),
    long(65, "r", 255),
    long(65, "😀", 255),
    long(255, "r", 255),
    long(255, "😀", 255),
    long(256, "r", 0),
    long(256, "😀", 0),
    long(1_000_000, "r", 0),
    ...[
      "",
      "a\0",
      "\0",
      "\ud83d",
      "a\udc00b",
      5,
      0,
      null,
      true,
      ["a"],
      { id: "a" },
      Number.NaN,
      10n,
      Symbol("id"),
      () => "a",
    ].map((id): HostileId => ({ id, fits: 0 })),
  ),
  text.map((id): HostileId => ({ id, fits: id === "" || id.includes("\0") || [...id].length > 64 ? 0 : 64 })),
);
