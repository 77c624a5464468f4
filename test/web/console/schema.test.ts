import { describe, expect, test } from "vitest";
import { found, kindOf, ordered, parse, type Schema, textOf, withValue } from "#pages/console/playground/schema.ts";

const COLUMN: Schema = { anyOf: [{ type: "string" }, { type: "integer" }] };
const FORMATS: Schema = { anyOf: [{ type: "string" }, { type: "array" }] };
const QUOTE: Schema = { anyOf: [{ type: "string" }, { type: "null" }] };

describe("a setting", () => {
  test.each([
    ["decimal", { type: "string", enum: [".", ","] }, "choice"],
    ["timeZone", { type: "string" }, "zone"],
    ["unit", { type: "string" }, "unit"],
    ["encoding", { type: "string" }, "text"],
    ["sheet", COLUMN, "text"],
    ["skipLines", { type: "integer" }, "number"],
    ["trim", { type: "boolean" }, "boolean"],
    ["date", { type: "object", properties: { column: COLUMN } }, "group"],
    ["format", FORMATS, "text"],
    ["preamble", { type: "array" }, "json"],
    ["other", {}, "json"],
  ] as const)("%s has the field that fits its schema", (name, schema, kind) => {
    expect(kindOf(name, schema)).toBe(kind);
  });

  test.each([
    ["text", COLUMN, "3", 3],
    ["text", COLUMN, "Value", "Value"],
    ["text", { type: "string" }, "3", "3"],
    ["text", QUOTE, "null", null],
    ["text", FORMATS, "iso", "iso"],
    ["text", FORMATS, '["iso","unix"]', ["iso", "unix"]],
    ["number", { type: "number" }, "0.5", 0.5],
    ["boolean", { type: "boolean" }, "false", false],
    ["json", {}, '["a"]', ["a"]],
    ["choice", { enum: [1, 2] }, "2", 2],
    ["text", { type: "string" }, "", undefined],
  ] as const)("as %s is read from its text, and written back", (kind, schema, text, value) => {
    expect(parse(kind, schema as Schema, text)).toEqual({ value, isFault: false });
    expect(parse(kind, schema as Schema, textOf(kind, value)).value).toEqual(value);
  });

  test.each([
    ["number", { type: "integer" }, "1.5"],
    ["number", { type: "number" }, "one"],
    ["json", {}, "[1,"],
    ["choice", { enum: ["a"] }, "b"],
  ] as const)("as %s is a fault where its text is none of its values", (kind, schema, text) => {
    expect(parse(kind, schema as Schema, text).isFault).toBe(true);
  });
});

test("a value is set and taken out in its place, and the order stays", () => {
  const settings = { delimiter: ";", date: { column: "When", format: "iso" }, decimal: "," };
  const changed = withValue(settings, ["date", "column"], "At");
  expect(JSON.stringify(changed)).toBe('{"delimiter":";","date":{"column":"At","format":"iso"},"decimal":","}');
  expect(withValue(changed, ["delimiter"], undefined)).not.toHaveProperty("delimiter");
  const empty = withValue(withValue(settings, ["date", "column"], undefined), ["date", "format"], undefined);
  expect(empty).toEqual({ delimiter: ";", decimal: "," });
  expect(withValue({}, ["date", "column"], 1)).toEqual({ date: { column: 1 } });
});

test("of many settings, those that are needed or given come first", () => {
  const names = ["a", "b", "c", "timeZone", "d", "e", "f", "g", "h", "i"];
  const schema = { properties: Object.fromEntries(names.map((name) => [name, {}])), required: ["c"] };
  expect(ordered(schema, { h: 1 }, 8).first).toEqual(["c", "timeZone", "h"]);
  expect(ordered(schema, { h: 1 }, 8).more).toHaveLength(7);
  expect(ordered(schema, {}, 10)).toEqual({ first: names, more: [] });
});

test("a setting is found by words of its name and description, also in a group", () => {
  const schema: Schema = {
    properties: {
      decimal: { type: "string", description: "Decimal mark." },
      date: { properties: { format: { description: "In letters, such as dd/MM/yyyy" } } },
    },
  };
  expect(found(schema, "mark DECIMAL")).toEqual([["decimal"]]);
  expect(found(schema, "date letters")).toEqual([["date", "format"]]);
  expect(found(schema, "unit")).toEqual([]);
});
