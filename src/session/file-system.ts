/** SQLite's WAL keeps an index in memory that processes share, which a network's file system does not give them. */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { SessionPathError } from "./errors.ts";

/** The f_type that Linux gives (linux/magic.h and statfs(2)). Other systems have other numbers, and are not told apart. */
const NETWORK = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x564c, "NCP"],
  [0x5346414f, "AFS"],
  [0x73757245, "Coda"],
  [0x01021997, "9P"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
]);

/** The network file system of this type; undefined for a local one, and for one that is not known. */
export function networkFileSystem(type: number): string | undefined {
  // Node gives the type as a signed number on some systems.
  return NETWORK.get(type >>> 0);
}

/** @param path a file in the directory in question, there or not @throws SessionPathError */
export async function refuseNetworkFileSystem(path: string): Promise<void> {
  if (process.platform !== "linux") return;
  const { type } = await statfs(dirname(path));
  const name = networkFileSystem(type);
  if (name === undefined) return;
  throw new SessionPathError(
    dirname(path),
    `is on a network file system (${name}), where SQLite's WAL may lose data. Use a local directory, or \`backend: json\`.`,
  );
}
