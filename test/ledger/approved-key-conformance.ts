import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";

/** Host keys that a person approved. */
export function approvedKeyConformance(ledger: () => Ledger): void {
  it("keeps each approval once, in the order of their times", async () => {
    const { approvedKeys } = ledger();
    expect(await approvedKeys.list()).toEqual([]);
    const later = { drop: "field", lines: "# b\nb ssh-ed25519 BB\n", approvedAt: "2026-03-02T00:00:00.000Z" };
    const first = { drop: "werk ö", lines: "# a\na ssh-ed25519 AA\n", approvedAt: "2026-03-01T00:00:00.000Z" };
    for (const key of [later, first, later]) await approvedKeys.keep(key);
    expect(await approvedKeys.list()).toEqual([first, later]);
  });
}
