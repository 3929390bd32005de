/** The same work for each store that is measured: what is added, and how often. */
export const ADDS = 50;
export const BATCH = 10_000;
export const SAVES = 50;
export const GETS = 20;
/** How often Mem0 gets a memory: it reads the whole file each time, so fewer tell enough. */
export const SCANS = 2;
/** The large file: so many memories with so many changes each. */
export const MEMORIES = 1000;
export const CHANGES = 1000;
/** Mem0 tells its models to extract facts of 15 to 80 words: this one has 40. */
export const VALUE =
  "Ada prefers tea over coffee in the afternoon and takes it without sugar, because coffee after lunch kept her awake " +
  "during her first year at the institute in Lisbon, where she worked on tide tables until the spring of 2024.";
