import { randomFillSync } from "node:crypto";

const POOL = Buffer.alloc(4096);
const BYTES_PER_ID = 8;
let used = POOL.length;
let last = 0;
let count = 0;

/**
 * A new id for a row of Mem0's tables: a UUID of version 7, whose order is that of time. Mem0's own are random; ids that
 * are nearly in order touch few pages of the table's index, so that a batch costs a fraction.
 */
export function newRecordId(): string {
  if (used === POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const random = POOL.toString("hex", used, used + BYTES_PER_ID);
  used += BYTES_PER_ID;
  const now = Date.now();
  // Of one millisecond, up to 4,096 in their order; more go on in the next millisecond's place.
  if (now > last) {
    last = now;
    count = 0;
  } else if (++count === 0x1000) {
    last++;
    count = 0;
  }
  const time = last.toString(16).padStart(12, "0");
  const counter = count.toString(16).padStart(3, "0");
  // The variant's two bits, 10, and two random ones.
  const variant = ((Number.parseInt(random.slice(0, 1), 16) & 3) | 8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${variant}${random.slice(1, 4)}-${random.slice(4)}`;
}
