/**
 * A simulated disk: what would be on it if the power went now. What was written is there for sure only once it was synced. Of
 * what was not, any part may be there: of a file any set of its 512-byte sectors, of names a first part of the changes, in
 * their order, as file systems with a journal have it. A new name needs a sync of its directory.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Random } from "./random.ts";

const SECTOR = 512;

interface File {
  kind: "file";
  now: Buffer;
  synced: Buffer;
  /** What was done to it since, in order. */
  unsynced: ({ offset: number; data: Buffer } | { size: number })[];
}

interface Directory {
  kind: "directory";
  now: Map<string, Node>;
  synced: Map<string, Node>;
}

type Node = File | Directory;

/** A change of names that happens as a whole. */
type NameChange = { directory: Directory; name: string; node: Node | undefined }[];

/** How much of what was not synced is there. */
export type Survival = "nothing" | "everything" | Random;

export class Disk {
  readonly #root = newDirectory();
  #changes: NameChange[] = [];

  has(path: string): boolean {
    return this.#find(path) !== undefined;
  }

  create(path: string): void {
    this.#link(path, { kind: "file", now: Buffer.alloc(0), synced: Buffer.alloc(0), unsynced: [] });
  }

  makeDirectory(path: string): void {
    this.#link(path, newDirectory());
  }

  write(path: string, offset: number, data: Buffer): void {
    const file = this.#file(path);
    file.now = written(file.now, offset, data);
    file.unsynced.push({ offset, data });
  }

  truncate(path: string, size: number): void {
    const file = this.#file(path);
    file.now = resized(file.now, size);
    file.unsynced.push({ size });
  }

  remove(path: string): void {
    const { directory, name } = this.#place(path);
    this.#change([{ directory, name, node: undefined }]);
  }

  rename(from: string, to: string): void {
    const [old, place] = [this.#place(from), this.#place(to)];
    const node = old.directory.now.get(old.name);
    this.#change([
      { ...place, node },
      { ...old, node: undefined },
    ]);
  }

  sync(path: string): void {
    const node = path === "" ? this.#root : this.#find(path);
    if (node?.kind === "file") {
      node.synced = node.now;
      node.unsynced = [];
    } else if (node) {
      const mine = (change: NameChange) => change.some(({ directory }) => directory === node);
      for (const change of this.#changes.filter(mine)) for (const one of change) apply(one.directory.synced, one);
      this.#changes = this.#changes.filter((change) => !mine(change));
    }
  }

  /** Writes what is on the disk after the power went into a directory. @param survival of what was not synced */
  restore(target: string, survival: Survival): void {
    const count = this.#changes.length;
    const there = survival === "nothing" ? 0 : survival === "everything" ? count : survival.whole(0, count);
    const changes = this.#changes.slice(0, there).flat();
    const put = (directory: Directory, path: string) => {
      mkdirSync(path, { recursive: true });
      const names = new Map(directory.synced);
      for (const one of changes) if (one.directory === directory) apply(names, one);
      for (const [name, node] of names) {
        if (node.kind === "directory") put(node, join(path, name));
        else writeFileSync(join(path, name), contentOf(node, survival));
      }
    };
    put(this.#root, target);
  }

  #link(path: string, node: Node): void {
    this.#change([{ ...this.#place(path), node }]);
  }

  #change(change: NameChange): void {
    for (const one of change) apply(one.directory.now, one);
    this.#changes.push(change);
  }

  #place(path: string): { directory: Directory; name: string } {
    const parent = dirname(path) === "." ? this.#root : this.#find(dirname(path));
    if (parent?.kind !== "directory") throw new Error(`There is no directory for ${path} on the disk.`);
    return { directory: parent, name: path.slice(path.lastIndexOf("/") + 1) };
  }

  #find(path: string): Node | undefined {
    return path
      .split("/")
      .reduce<Node | undefined>(
        (node, name) => (node?.kind === "directory" ? node.now.get(name) : undefined),
        this.#root,
      );
  }

  #file(path: string): File {
    const node = this.#find(path);
    if (node?.kind !== "file") throw new Error(`There is no file ${path} on the disk.`);
    return node;
  }
}

const newDirectory = (): Directory => ({ kind: "directory", now: new Map(), synced: new Map() });

function apply(names: Map<string, Node>, { name, node }: NameChange[number]): void {
  if (node) names.set(name, node);
  else names.delete(name);
}

function contentOf({ now, synced, unsynced }: File, survival: Survival): Buffer {
  if (survival === "everything") return now;
  if (survival === "nothing") return synced;
  let content = synced;
  for (const change of unsynced) {
    if ("size" in change) {
      if (survival.chance(0.5)) content = resized(content, change.size);
      continue;
    }
    // Some writes are there whole, some not at all, some in part.
    const all = survival.chance(0.3);
    const none = !all && survival.chance(0.4);
    const { offset, data } = change;
    for (let at = 0; at < data.length && !none; ) {
      const end = Math.min(data.length, at + SECTOR - ((offset + at) % SECTOR));
      if (all || survival.chance(0.5)) content = written(content, offset + at, data.subarray(at, end));
      at = end;
    }
  }
  return content;
}

function written(old: Buffer, offset: number, data: Buffer): Buffer {
  const made = Buffer.alloc(Math.max(old.length, offset + data.length));
  old.copy(made);
  data.copy(made, offset);
  return made;
}

function resized(old: Buffer, size: number): Buffer {
  const made = Buffer.alloc(size);
  old.copy(made, 0, 0, size);
  return made;
}
