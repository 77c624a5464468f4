/** The tests of files and rules with a store on PostgreSQL, where the ledger of the gateway has a schema of its own. */
import { describe } from "vitest";
import { usePostgres } from "../hub/fixture.ts";

const TESTS = [
  "files.test.ts",
  "large-master-data.slow.test.ts",
  "master-data-forms.test.ts",
  "master-data-template.test.ts",
  "master-data.test.ts",
  "new-accounts.slow.test.ts",
  "source-zones.test.ts",
  "specification.test.ts",
  "stopped.test.ts",
];

await usePostgres();
describe.each(TESTS)("on PostgreSQL: %s", async (name) => {
  await import(/* @vite-ignore */ `./${name}`);
});
