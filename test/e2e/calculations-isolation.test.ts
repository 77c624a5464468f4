/** Wild scripts of one account, in a hub with others: each ends its own calculation only. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createChain, type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { idle } from "./calculation-chains.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const WILD = {
  "an infinite loop": "repeat {}",
  "a vector of 10 GB": "x <- rep(1, 1.25e9); list(TimeSeries = data.frame(Dates = 1, Values = sum(x)))",
  "quit()": 'quit(save = "no", status = 0)',
  "output of the wrong shape": 'list(TimeSeries = "nothing")',
  "an error": 'stop("on purpose")',
};
const TWICE = `points <- inputVariables$a$TimeSeries
list(TimeSeries = data.frame(Dates = points$Dates, Values = points$Values * 2))`;

const manager = (username: string, account: number) => ({
  username,
  password: `${username}-password`,
  accounts: [account],
  roles: ["Manager"],
});
const hubProcess = new HubProcess("hub", {
  users: [manager("manager", 1), manager("second", 2)],
  // A script that needs its whole time is one of the scene.
  calculated: { timeout: "15s", memory: "256MB" },
});
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await directory.remove();
});

const wildAccount = { as: "manager", account: 1 };
const otherAccount = { as: "second", account: 2 };
type Account = typeof wildAccount;

async function calculated(hub: HubCalls, more: Account, inputId: number, formula: string): Promise<number> {
  const [{ sourceId }] = await hub.get("/variables", { Ids: inputId }, more);
  const formulas = [{ formula, variables: [{ alias: "a", variableId: inputId }] }];
  const body = { name: "Calculated", sourceId, variableTypeId: 0, unitId: 8 };
  return hub.post("/variables", { ...body, calculated: { calculatedVariableFormulas: formulas } }, more);
}

test("wild scripts change nothing for others", { timeout: 300_000 }, async () => {
  const hub = await hubProcess.run(directory.path);
  const made = async (more: Account) => (await createChain(hub, { more })).variableIds[0] ?? 0;
  const wildInput = await made(wildAccount);
  const otherInput = await made(otherAccount);
  const wild = new Map<string, number>();
  for (const [name, formula] of Object.entries(WILD))
    wild.set(name, await calculated(hub, wildAccount, wildInput, formula));
  const neighbour = await calculated(hub, wildAccount, wildInput, "= a * 2");
  const expression = await calculated(hub, otherAccount, otherInput, "= a * 2");
  const script = await calculated(hub, otherAccount, otherInput, TWICE);

  const values = async (more: Account, variableId: number) =>
    (await hub.get("/data", { VariableId: variableId }, more)).map(({ rawValue }: { rawValue: number }) => rawValue);
  const stateOf = async (variableId: number) =>
    (await hub.get("/calculations", { VariableId: variableId }, wildAccount))[0]?.state;
  const others = [
    [otherAccount, expression],
    [otherAccount, script],
  ] as const;
  const expected: number[] = [];
  const complete = (more: Account, variableId: number) =>
    until("the calculations of others", async () => (await values(more, variableId)).length === expected.length);
  for (let hour = 0; hour < 3; hour += 1) {
    const data = [{ date: new Date(Date.UTC(2026, 2, 1, hour)).toISOString(), value: hour }];
    expected.push(hour * 2);
    expect(await hub.push([{ variableId: wildInput, data }], wildAccount)).toMatchObject({ stored: 1 });
    expect(await hub.push([{ variableId: otherInput, data }], otherAccount)).toMatchObject({ stored: 1 });
    for (const [more, variableId] of others) await complete(more, variableId);
  }
  await complete(wildAccount, neighbour);
  for (const [more, variableId] of [...others, [wildAccount, neighbour] as const])
    expect(await values(more, variableId)).toEqual(expected);
  for (const [name, variableId] of wild) {
    await until(`the end of ${name}`, async () => (await stateOf(variableId)) === "failed");
    expect(await values(wildAccount, variableId)).toEqual([]);
  }
  await idle(hub);
});
