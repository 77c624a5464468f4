/**
 * Works that one of all who have a ledger open may do at a time. `openTwo` opens one ledger twice, as two
 * processes would.
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { waitForTurn } from "#gateway/ledger/fleet.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";

const never = new AbortController().signal;

export function aloneConformance(openTwo: () => Promise<readonly [Ledger, Ledger]>): void {
  let one: Ledger;
  let other: Ledger;
  beforeEach(async () => {
    [one, other] = await openTwo();
  });
  afterEach(async () => {
    await other.close();
    await one.close();
  });

  it("run one after another under one key, in whichever process", async () => {
    const lines: string[] = [];
    const work = (name: string) => async () => {
      lines.push(`${name} begins`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      lines.push(`${name} ends`);
      return name;
    };
    const asked = [one, other, one, other].map(({ fleet }, at) => fleet.alone("key", work(`${at}`), never));
    expect(await Promise.all(asked)).toEqual(["0", "1", "2", "3"]);
    for (let at = 0; at < lines.length; at += 2) expect(lines[at + 1]).toBe(lines[at]?.replace("begins", "ends"));
  });

  it("run concurrently under different keys, also of one ledger", async () => {
    const met = Promise.withResolvers<void>();
    await Promise.all([
      one.fleet.alone("a", () => met.promise, never),
      one.fleet.alone("b", async () => met.resolve(), never),
    ]);
  });

  it("let others continue when they fail, and are no longer awaited after their caller aborted", async () => {
    const failed = one.fleet.alone("key", () => Promise.reject(new Error("in vain")), never);
    await expect(failed).rejects.toThrow("in vain");
    const [stop, held, end] = [new AbortController(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const long = other.fleet.alone(
      "key",
      () => {
        held.resolve();
        return end.promise;
      },
      never,
    );
    await held.promise;
    let done = false;
    const waiting = one.fleet.alone(
      "key",
      async () => {
        done = true;
      },
      stop.signal,
    );
    stop.abort(new Error("given up"));
    await expect(waiting).rejects.toThrow("given up");
    end.resolve();
    await long;
    expect(done).toBe(false);
  });

  it("are awaited for a limited time", async () => {
    let nowMs = 0;
    const hasty = { ...systemClock, monotonicMs: () => (nowMs += 6_000) };
    const asked = waitForTurn(() => null, "key", hasty, never);
    await expect(asked).rejects.toMatchObject({ name: "TransientError", code: "HG-LEDG-012" });
  });
}
