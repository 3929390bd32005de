import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    globalSetup: ["test/setup/build.ts", "test/setup/postgres.ts", "test/setup/mysql.ts"],
    coverage: { include: ["src/**"], reporter: ["text-summary", "html"] },
  },
});
