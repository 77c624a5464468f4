import { describe, expect, it } from "vitest";
import { expectOptions, lateness } from "#gateway/triggers/expectation.ts";

const daily = expectOptions.parse({ by: "07:00", timeZone: "Europe/Brussels" });
const longAgo = Temporal.Instant.from("2020-01-01T00:00:00Z");

function late(options: unknown, lastSeen: string | null, now: string, watchedSince = longAgo): string | null {
  const found = lateness("t", expectOptions.parse(options), {
    lastSeen: lastSeen === null ? null : Temporal.Instant.from(lastSeen),
    now: Temporal.Instant.from(now),
    watchedSince,
  });
  return found === null ? null : found.due.toString();
}

describe("a file that is expected by 07:00 every day", () => {
  it("is not late before 07:00", () => expect(late(daily, "2026-03-09T04:00:00Z", "2026-03-10T05:59:00Z")).toBeNull());
  it("is late from 07:00 when no file came since 07:00 of the day before", () =>
    expect(late(daily, "2026-03-09T05:59:00Z", "2026-03-10T06:00:00Z")).toBe("2026-03-10T06:00:00Z"));
  it("is not late when it came in the night", () =>
    expect(late(daily, "2026-03-10T02:00:00Z", "2026-03-10T06:00:00Z")).toBeNull());
  it("is no longer late when it arrives late", () =>
    expect(late(daily, "2026-03-10T09:00:00Z", "2026-03-10T09:01:00Z")).toBeNull());
  it("is due by the clock of its zone also after a change of daylight saving", () =>
    expect(late(daily, "2026-03-28T05:00:00Z", "2026-03-29T05:00:00Z")).toBe("2026-03-29T05:00:00Z"));
  it("is not late for a time before the watch began", () =>
    expect(late(daily, null, "2026-03-10T08:00:00Z", Temporal.Instant.from("2026-03-10T07:30:00Z"))).toBeNull());
  it("is late when none arrived since the watch began", () =>
    expect(late(daily, null, "2026-03-10T08:00:00Z", Temporal.Instant.from("2026-03-09T07:30:00Z"))).toBe(
      "2026-03-10T06:00:00Z",
    ));
});

describe("other periods", () => {
  it("expects no files of weekdays on a weekend", () =>
    expect(
      late({ by: "07:00", every: "weekday", timeZone: "UTC" }, "2026-03-13T06:00:00Z", "2026-03-15T12:00:00Z"),
    ).toBeNull());
  it("expects a weekly file on its day", () =>
    expect(
      late({ by: "07:00", every: "week", on: 3, timeZone: "UTC" }, "2026-03-03T12:00:00Z", "2026-03-12T12:00:00Z"),
    ).toBe("2026-03-11T07:00:00Z"));
  it("expects a monthly file on its day", () =>
    expect(
      late({ by: "12:00", every: "month", on: 5, timeZone: "UTC" }, "2026-02-05T11:00:00Z", "2026-03-06T00:00:00Z"),
    ).toBe("2026-03-05T12:00:00Z"));
  it("accepts Windows names of zones", () =>
    expect(late({ by: "07:00", timeZone: "Romance Standard Time" }, null, "2026-03-10T06:00:00Z")).toBe(
      "2026-03-10T06:00:00Z",
    ));
  it.each([
    { by: "7:00", timeZone: "UTC" },
    { by: "07:00" },
    { by: "07:00", timeZone: "Mars/Olympus" },
    { by: "07:00", every: "week", on: 8, timeZone: "UTC" },
  ])("refuses %j", (options) => expect(expectOptions.safeParse(options).success).toBe(false));
});
