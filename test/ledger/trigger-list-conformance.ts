import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";

/** The last list of triggers of each service. */
export function triggerListConformance(ledger: () => Ledger): void {
  it("keeps the last list of each source", async () => {
    const { triggerLists } = ledger();
    expect(await triggerLists.find("main")).toBeNull();
    const list = { source: "main", listedAt: "2026-03-01T00:00:00.000Z", triggers: '[{"id":1,"name":"Zähler"}]' };
    await triggerLists.keep(list);
    await triggerLists.keep({ ...list, source: "other", triggers: "[]" });
    expect(await triggerLists.find("main")).toEqual(list);
    const next = { ...list, listedAt: "2026-03-01T00:05:00.000Z", triggers: "[]" };
    await triggerLists.keep(next);
    expect(await triggerLists.find("main")).toEqual(next);
    expect(await triggerLists.find("other")).toMatchObject({ listedAt: list.listedAt });
  });
}
