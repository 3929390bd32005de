/**
 * A value that is handed in anywhere either comes back as it was, or is refused with the same code by every engine; and what
 * is refused changes nothing. What must come back is worked out apart from the door that copies.
 */
import { deepStrictEqual } from "node:assert/strict";
import * as fc from "fast-check";
import { afterAll, expect } from "vitest";
import type { Checkpointer } from "../../src/checkpoint/checkpointer.ts";
import { EverthreadError } from "../../src/errors.ts";
import {
  archiveObjectFields,
  archiveTextFields,
  begin,
  type Field,
  type IdField,
  idFields,
  jsonFields,
  objectFields,
  THREAD,
  textFields,
} from "./fields.ts";
import { fuzz } from "./fuzz.ts";
import { type Hostile, type HostileId, hostile, hostileId, hostileObject, MOST_CONTAINERS } from "./hostile.ts";
import { servers } from "./servers.ts";
import { type Engine, json, memory, sqlite } from "./stores.ts";

const found = await servers();
afterAll(found.dispose);

interface Case {
  field: Field;
  value: Hostile;
}

const textual = new Set([...textFields, ...archiveTextFields]);
const isText = ({ stored }: Hostile) => typeof stored?.value === "string";
const inside = (fields: readonly Field[], value: fc.Arbitrary<Hostile>): fc.Arbitrary<Case> =>
  fc.record({ field: fc.constantFrom(...fields), value });

function cases(archives: boolean): fc.Arbitrary<Case> {
  return fc.oneof(
    { weight: 3, arbitrary: inside([...objectFields, ...(archives ? archiveObjectFields : [])], hostileObject) },
    { weight: 3, arbitrary: inside(jsonFields, hostile) },
    { weight: 2, arbitrary: inside([...textFields, ...(archives ? archiveTextFields : [])], hostile) },
  );
}

/** What a caller gets to know of a refusal. @throws what is no error of Everthread's */
async function refusal(attempt: Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt;
    return undefined;
  } catch (error) {
    if (error instanceof EverthreadError) return error.code;
    throw error;
  }
}

async function everything(store: Checkpointer): Promise<unknown> {
  return [
    await store.load(THREAD),
    await store.load("fork"),
    await store.listMessages(THREAD),
    await store.listRuns(THREAD),
    await store.loadPending(THREAD),
    await store.listHitlAnswers(THREAD),
    await store.archives?.list(THREAD),
    await store.listThreads(),
  ];
}

async function checkCase(engine: Engine, { field, value }: Case): Promise<void> {
  const opened = await engine.make();
  const store = opened.checkpointer;
  try {
    await begin(store);
    const before = await everything(store);
    const code = await refusal(field.put(store, value.make()));
    const ofArchive = archiveTextFields.includes(field);
    const isKept =
      value.stored !== undefined &&
      field.around + value.depth <= MOST_CONTAINERS &&
      (isText(value) || !textual.has(field) || (field.nullable && value.stored.value === null));
    if (isKept) {
      expect(code).toBeUndefined();
      deepStrictEqual(await field.get(store), value.stored?.value);
    } else {
      expect(code).toBe(ofArchive ? "invalid_argument" : "invalid_message");
      deepStrictEqual(await everything(store), before);
    }
  } finally {
    await opened.dispose();
  }
}

async function checkId(engine: Engine, field: IdField, { id, fits }: HostileId): Promise<void> {
  const opened = await engine.make();
  const store = opened.checkpointer;
  try {
    await begin(store);
    const before = await everything(store);
    const max = engine.nature.shortQuestionRuns && field.name === "the run of a question" ? 64 : field.max;
    let foundAgain: boolean | undefined;
    const code = await refusal(
      field.put(store, id).then((same) => {
        foundAgain = same;
      }),
    );
    if ((field.optional && id === null) || (fits > 0 && fits <= max)) {
      expect([code, foundAgain]).toEqual([undefined, true]);
    } else {
      // What is no text where a message or a question must have one is a fault of its shape.
      expect(["invalid_id", ...(typeof id === "string" ? [] : ["invalid_message"])]).toContain(code);
      deepStrictEqual(await everything(store), before);
    }
  } finally {
    await opened.dispose();
  }
}

for (const engine of [memory, sqlite, json, ...found.engines]) {
  const runs = { memory: 300, sqlite: 150, json: 60 }[engine.name] ?? 15;
  const probe = await engine.make();
  const archives = probe.checkpointer.archives !== undefined;
  await probe.dispose();
  fuzz(
    `values are kept or refused on ${engine.name}`,
    runs,
    fc.asyncProperty(cases(archives), (one) => checkCase(engine, one)),
  );
  fuzz(
    `ids are kept or refused on ${engine.name}`,
    runs,
    fc.asyncProperty(fc.constantFrom(...idFields), hostileId, (field, id) => checkId(engine, field, id)),
  );
}
