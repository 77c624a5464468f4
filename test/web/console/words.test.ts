import { expect, test } from "vitest";
import { actionsOf, sameSubject, targetOf } from "#pages/console/actions/subjects.ts";
import { placeWords } from "#pages/console/place.ts";
import { TEXTS } from "#pages/console/texts.ts";
import {
  bytes,
  cut,
  length,
  moment,
  msOfMoment,
  offset,
  typedMoment,
  visible,
  withMoments,
} from "#pages/console/words.ts";

test.each([
  [40, "40 ms"],
  [1_240, "1.2 s"],
  [59_000, "59 s"],
  [3_600_000, "1 h"],
  [3_725_000, "1 h 2 min"],
  [93_600_000, "1 d 2 h"],
  [-5, "0 ms"],
])("%i ms are %s", (ms, words) => {
  expect(length(ms)).toBe(words);
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [48_123, "48.1 KB"],
  [3_100_000_000, "3.1 GB"],
])("%i bytes are %s", (count, words) => {
  expect(bytes(count)).toBe(words);
});

test("moments are of the zone, also where the clocks change", () => {
  const before = Date.parse("2026-03-29T00:59:59Z");
  expect([moment(before, "Europe/Paris"), offset(before, "Europe/Paris")]).toEqual([
    "2026-03-29 01:59:59",
    "UTC+01:00",
  ]);
  const after = before + 1_000;
  expect([moment(after, "Europe/Paris"), offset(after, "Europe/Paris")]).toEqual(["2026-03-29 03:00:00", "UTC+02:00"]);
  expect(offset(after, "UTC")).toBe("UTC");
  expect(offset(Date.parse("2026-01-01T00:00:00Z"), "America/St_Johns")).toBe("UTC−03:30");
});

test("marks that turn the direction are shown, and other text is left alone", () => {
  expect(visible("a\u202egnp.exe")).toBe("a‹U+202E›gnp.exe");
  expect(visible("\u0000\u001b[31m")).toBe("‹U+0000›‹U+001B›[31m");
  expect(visible("Zähler\tنص\n<b>")).toBe("Zähler\tنص\n<b>");
});

test("moments in a text of the gateway are of the zone, and the time of a file is no number", () => {
  const words = (text: string) => withMoments(text, "Europe/Brussels");
  expect(words("96 points, 2026-03-01T00:00:00Z to 2026-07-01T00:00:00.5Z; a.csv")).toBe(
    "96 points, 2026-03-01 01:00:00 to 2026-07-01 02:00:00; a.csv",
  );
  expect(words("a.csv, 5 bytes, time 1795236524972665825")).toBe("a.csv, 5 bytes, changed 2026-11-21 05:48:44");
  expect(words("a 2026-03-01 time 12 2026-99-99T00:00Z")).toBe("a 2026-03-01 time 12 2026-99-99T00:00Z");
});

test("long texts are cut", () => {
  expect(cut("abc", 3)).toBe("abc");
  expect(cut("abcd", 3)).toBe("abc…");
});

test("a place is said as far as it is known", () => {
  expect(placeWords({ sheet: "Data", row: 12, column: "Value", text: "12,5" })).toBe(
    "sheet Data, row 12, column Value: “12,5”",
  );
  expect(placeWords({ row: 12, column: "column 3" })).toBe("row 12, column 3");
  expect(placeWords({ text: "x" })).toBe("“x”");
  expect(placeWords(null)).toBe("");
});

test("actions are counted over items, and each knows its subject", () => {
  const file = { run: "r", drop: "d", path: "p", trigger: "t", actions: ["replay", "forget"] as const };
  const drop = { run: null, drop: "d", path: null, trigger: null, actions: ["pause"] as const, kind: "drop" };
  const trigger = { ...drop, trigger: "t", kind: "trigger" };
  expect(actionsOf([file, file, drop])).toEqual([
    { action: "replay", count: 2 },
    { action: "forget", count: 2 },
    { action: "pause", count: 1 },
  ]);
  expect(targetOf("replay", file)?.subject).toEqual({ run: "r" });
  expect(targetOf("forget", file)?.subject).toEqual({ drop: "d", path: "p" });
  expect(targetOf("pause", drop)?.subject).toEqual({ kind: "drop", name: "d" });
  expect(targetOf("pause", trigger)?.subject).toEqual({ kind: "trigger", name: "t" });
  expect(targetOf("replay", drop)).toBeNull();
  expect(sameSubject({ drop: "d", path: "p" }, { path: "p", drop: "d" })).toBe(true);
  expect(sameSubject({ run: "a" }, { run: "b" })).toBe(false);
});

test.each([
  ["2026-03-01 01:00", "2026-03-01T00:00:00.000Z"],
  [" 2026-03-01 01:00:07 ", "2026-03-01T00:00:07.000Z"],
  ["2026-03-01T01:00:07.25", "2026-03-01T00:00:07.250Z"],
  ["2026-07-01", "2026-06-30T22:00:00.000Z"],
  ["2026-10-25 02:30", "2026-10-25T00:30:00.000Z"],
  ["2026-03-01 01:00:00 UTC", "2026-03-01T01:00:00.000Z"],
  ["2026-03-01 01:00:00 UTC−02:30", "2026-03-01T03:30:00.000Z"],
  ["2026-03-01T01:00:00+0100", "2026-03-01T00:00:00.000Z"],
  ["2026-03-01T00:00:00.5Z", "2026-03-01T00:00:00.500Z"],
])("%s is read in the zone of the page, unless it names an offset", (text, instant) => {
  expect(new Date(msOfMoment(text, "Europe/Brussels") ?? Number.NaN).toISOString()).toBe(instant);
});

test.each(["", "yesterday", "2026-13-01", "2026-03-01 25:00", "01.03.2026"])("%s is no moment", (text) => {
  expect(msOfMoment(text, "UTC")).toBeNull();
});

test("a moment is typed as pages show it, unless its hour comes twice or it is finer than a second", () => {
  expect(typedMoment("2026-03-01T00:00:07.000Z", "Europe/Brussels")).toBe("2026-03-01 01:00:07");
  for (const instant of ["2026-10-25T01:30:00.000Z", "2026-03-01T00:00:07.250Z", "soon"])
    expect(typedMoment(instant, "Europe/Brussels")).toBe(instant);
});

test("numbers have the form of their noun", () => {
  const { playground, payload, consequence } = TEXTS;
  expect([playground.summary(1, 1), playground.summary(3, 2)]).toEqual([
    "1 reading of 1 target",
    "3 readings of 2 targets",
  ]);
  expect(payload.batch("1", 1, "a")).toBe("1: 1 reading, a");
  expect([consequence.versions(1), consequence.runs(1), consequence.versions(2)]).toEqual([
    "version",
    "run",
    "versions",
  ]);
});
