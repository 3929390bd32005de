import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    // Most files wait on processes, disks and servers; by default one core would be left idle.
    maxWorkers: Math.max(2, availableParallelism() + 1),
    globalSetup: ["test/setup/build.ts", "test/setup/postgres.ts", "test/setup/mysql.ts"],
    coverage: { include: ["src/**"], reporter: ["text-summary", "html"] },
  },
});
