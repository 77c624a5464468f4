import { describe } from "vitest";
import { usePostgres } from "./fixture.ts";

await usePostgres();
describe.each(["invitations", "acceptance", "people-pages", "mail/delivery", "specification/invitations", "walls"])(
  "%s",
  async (name) => {
    await import(/* @vite-ignore */ `./${name}.test.ts`);
  },
);
