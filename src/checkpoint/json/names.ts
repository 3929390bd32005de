/**
 * The directories of archives. The session's own thread has them under their plain ids, `a1`; those of another thread are named after
 * it as well: `a1.other`. A thread's id is data and may be anything, so it is escaped: small letters a to z, digits, `-`
 * and `_` stand for themselves, every other byte of its UTF-8 is `=` and two hexadecimal digits. No two ids share a name, also
 * where upper and lower case are one. Of an id too long for a name there is `~` and its SHA-256: the archive itself names it.
 */
import { createHash } from "node:crypto";

const LONGEST = 150;
const NAME = /^a[1-9]\d{0,14}(?:\.(?:[a-z0-9_=-]+|~[0-9a-f]{64}))?(?:~[1-9]\d{0,8})?$/;

/**
 * A name that no other archive has.
 *
 * @param ownThreadId the thread that has the plain names @param isTaken whether an archive lies there already
 */
export function nameArchive(
  threadId: string,
  archiveId: string,
  ownThreadId: string,
  isTaken: (name: string) => boolean,
): string {
  const plain = threadId === ownThreadId ? archiveId : `${archiveId}.${escapeId(threadId)}`;
  let name = plain;
  for (let count = 2; isTaken(name); count++) name = `${plain}~${count}`;
  return name;
}

/** Whether it is a name from here, and so leads nowhere else. */
export function isArchiveName(name: string): boolean {
  return NAME.test(name);
}

function escapeId(threadId: string): string {
  const bytes = Buffer.from(threadId);
  const escaped = [...bytes].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[a-z0-9_-]/.test(character) ? character : `=${byte.toString(16).padStart(2, "0")}`;
  });
  const name = escaped.join("");
  return name.length <= LONGEST ? name : `~${createHash("sha256").update(bytes).digest("hex")}`;
}
