/** The rules of scripts, from the push to the outputs, hold on PostgreSQL as well. */
import { describe } from "vitest";
import { usePostgres } from "../fixture.ts";

await usePostgres();
describe("on PostgreSQL", async () => {
  await import("../specification/calculations.slow.test.ts");
});
