import { expect, it } from "vitest";
import { Turns } from "#core/turns.ts";

it("gives turns in the order of entering, however long each prepares", async () => {
  const turns = new Turns();
  const order: string[] = [];
  const gates = new Map(["a", "b", "c"].map((name) => [name, Promise.withResolvers<void>()]));
  const take = async (name: string) => {
    const turn = turns.enter();
    await gates.get(name)?.promise;
    await turn.mine;
    order.push(name);
    turn.pass();
  };
  const all = ["a", "b", "c"].map(take);
  for (const name of ["c", "b", "a"]) gates.get(name)?.resolve();
  await Promise.all(all);
  expect(order).toEqual(["a", "b", "c"]);
});

it("lets the next one continue when one passed without doing anything", async () => {
  const turns = new Turns();
  const first = turns.enter();
  const second = turns.enter();
  first.pass();
  first.pass();
  await second.mine;
});
