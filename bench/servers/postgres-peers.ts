/**
 * One conversation of 500 steps, a message a step, as an agent writes it: Everthread, LangGraph's checkpointer and CubeLoop's
 * on one server, each with a database of its own, by turns.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { migrate, PostgresCheckpointer } from "../../src/checkpoint/postgres/checkpointer.ts";
import { newId } from "../../src/util/ids.ts";
import { python, pythonWith } from "../../test/support/python.ts";
import { benchDir, type Figure, ratios, repeat, time } from "../measure.ts";
import { type Peer, startPeer } from "../peer.ts";
import { conversationOf, type Turn } from "./conversation.ts";
import type { BenchServer } from "./server.ts";

const STEPS = 500;
const LOADS = 10;
const CONVERSATIONS = 5;
/** Of LangGraph's figure to Everthread's. */
const TARGETS = { append: 3, load: 5, bytes: 20 };

/** Takes the lines "append THREAD" and "load THREAD". */
interface Program extends Peer {
  url: string;
}

export async function measurePeers(server: BenchServer): Promise<Figure[]> {
  const programs = await startPrograms(server);
  const all = await repeat(async () => {
    const each: Record<string, number> = {};
    for (const [name, program] of Object.entries(programs)) {
      const before = await sizeOf(program.url);
      const threadId = newId();
      each[`${name} append`] = await program.ask(`append ${threadId}`);
      each[`${name} bytes`] = (await sizeOf(program.url)) - before;
      let load = 0;
      for (let i = 0; i < LOADS; i++) load += (await program.ask(`load ${threadId}`)) / LOADS;
      each[`${name} load`] = load;
    }
    return each;
  }, CONVERSATIONS);
  for (const program of Object.values(programs)) await program.end();
  const figures: Figure[] = [];
  for (const [what, least] of Object.entries(TARGETS)) {
    const of = (name: string) => all[`${name} ${what}`] ?? [];
    for (const name of Object.keys(programs)) {
      const unit = what === "bytes" ? "bytes" : "ms";
      figures.push({ what: `500 steps, ${what}: ${name}`, unit, values: of(name) });
      if (name === "Everthread") continue;
      const values = ratios(of(name), of("Everthread"));
      const target = name === "LangGraph" ? { target: { least } } : {};
      figures.push({ what: `500 steps, ${what}: ${name} / Everthread`, unit: "×", values, ...target });
    }
  }
  return figures;
}

async function startPrograms(server: BenchServer): Promise<Record<string, Program>> {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const turns = conversationOf(STEPS);
  const file = join(benchDir(), "turns.json");
  writeFileSync(file, JSON.stringify(turns));
  const programs: Record<string, Program> = { Everthread: await everthread(await server.database("ours"), turns) };
  if (existsSync(here("node_modules"))) {
    const url = await server.database("langgraph");
    const args = ["--no-warnings", here("langgraph-peer.mjs"), url, file];
    programs.LangGraph = { url, ...startPeer(process.execPath, args) };
  }
  if (python.path !== null && pythonWith("asyncpg").found) {
    const url = await server.database("cubeloop");
    await migrate(url);
    programs.CubeLoop = { url, ...startPeer(python.path, [here("cubeloop_peer.py"), url, file]) };
  }
  return programs;
}

async function everthread(url: string, turns: readonly Turn[]): Promise<Program> {
  await migrate(url);
  const store = await PostgresCheckpointer.open(url);
  const append = async (threadId: string) => {
    let expectedRevision = 0;
    for (const { runId, messages } of turns) {
      await store.claimRun(threadId, runId);
      for (const message of messages) expectedRevision = await store.append(threadId, [message], { expectedRevision });
      await store.markRunComplete(threadId, runId);
    }
  };
  const ask = async (line: string) => {
    const [name, threadId = ""] = line.split(" ");
    return await time(() => (name === "append" ? append(threadId) : store.load(threadId)));
  };
  return { url, ask, end: () => store.close() };
}

/** The bytes of all tables, with their indexes and what is stored outside of rows. */
async function sizeOf(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  );
  await client.end();
  return Number(rows[0].bytes);
}
