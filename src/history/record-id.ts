import { randomFillSync } from "node:crypto";

const POOL = Buffer.alloc(4096);
const BYTES_PER_ID = 8;
const IDS_PER_MS = 0x1000;
let used = POOL.length;
let hex = "";
let last = 0;
let prefix = "";
let count = 0;

/**
 * A new id for a row of Mem0's tables: a UUID of version 7, whose order is that of time. Mem0's own are random; ids that
 * are nearly in order touch few pages of the table's index, so that a batch costs a fraction.
 */
export function newRecordId(): string {
  if (used === POOL.length) {
    hex = randomFillSync(POOL).toString("hex");
    used = 0;
  }
  const random = hex.slice(used * 2, (used + BYTES_PER_ID) * 2);
  used += BYTES_PER_ID;
  const now = Date.now();
  if (now > last) begin(now);
  // Of one millisecond, so many in their order; more go on in the next one's place.
  else if (++count === IDS_PER_MS) begin(last + 1);
  // The first digit of the last half is the variant: two set bits, and two random ones.
  const variant = "89ab"[random.charCodeAt(0) & 3];
  return `${prefix}${count.toString(16).padStart(3, "0")}-${variant}${random.slice(1, 4)}-${random.slice(4)}`;
}

function begin(millisecond: number): void {
  last = millisecond;
  count = 0;
  const time = millisecond.toString(16).padStart(12, "0");
  prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
}
