/** The tests of files and rules with a store on PostgreSQL, where the ledger of the gateway has a schema of its own. */
import { describe } from "vitest";
import { usePostgres } from "../hub/fixture.ts";

await usePostgres();
describe("on PostgreSQL", async () => {
  await import("./files.test.ts");
  await import("./master-data.test.ts");
  await import("./master-data-template.test.ts");
  await import("./large-master-data.slow.test.ts");
  await import("./specification.test.ts");
});
