import { expect, it } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { DERIVED } from "../../src/sql/migrations.ts";
import { createLog, type Logger } from "../../src/support/log.ts";
import { deliver, mapped } from "./fixtures.ts";

/** `makeAgain`: the statements that name every state of runs; `change` executes SQL on the closed ledger. */
export function stateSchemaConformance(
  makeAgain: string | undefined,
  fresh: () => { open(readOnly?: boolean, log?: Logger): Promise<Ledger>; change(sql: string): unknown },
): void {
  const made = makeAgain ?? "";

  it("takes up a state that its schema does not name yet, and keeps its runs", async () => {
    const { open, change } = fresh();
    const before = await open();
    const run = await mapped(before, "a.csv");
    await before.close();
    await change(made.replaceAll(/ OR state = 'unconfirmed'|, 'unconfirmed'|'unconfirmed', /g, ""));
    await expect(open(true)).rejects.toMatchObject({ code: "HG-LEDG-003" });

    const written: string[] = [];
    const log = createLog("info", { write: (line) => void written.push(line) });
    const ledger = await open(false, log);
    expect(written.join("")).toContain(DERIVED);
    expect(await ledger.run(run.id)).toEqual(run);
    const { id } = await deliver(ledger, run);
    await ledger.advanceRun(id, "accepted", "unconfirmed");
    expect(await ledger.runsIn(["unconfirmed"], { unsettled: true })).toMatchObject([{ id }]);
    await ledger.close();
    await (await open(true)).close();
    written.length = 0;
    await (await open(false, log)).close();
    expect(written.join("")).not.toContain("brought up");
  });

  it("is refused when its schema names a state of a later version", async () => {
    const { open, change } = fresh();
    await (await open()).close();
    await change(made.replaceAll("'unconfirmed'", "'later'"));
    for (const readOnly of [false, true])
      await expect(open(readOnly)).rejects.toMatchObject({
        code: "HG-LEDG-003",
        message: expect.stringContaining("has later in its schema"),
      });
  });
}
