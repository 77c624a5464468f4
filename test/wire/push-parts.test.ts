import fc from "fast-check";
import { expect, test } from "vitest";
import { PushBodyFault, type PushElement, readPushBody, readPushParts } from "#wire/index.ts";

/** The result of reading a body: its elements, with the parts of one joined again; or the kind of its fault. */
function whole(bytes: Uint8Array): unknown {
  return outcomeOf(() => readPushBody(bytes));
}
function inParts(bytes: Uint8Array, piece: number): unknown {
  return outcomeOf(() => {
    const joined: PushElement[] = [];
    let last = "";
    for (const part of readPushParts(bytes, { whole: 0, piece })) {
      const { data, ...head } = part;
      const words = JSON.stringify(head);
      const before = joined.at(-1);
      // Elements of these bodies have heads of their own, so that an equal head continues the element.
      if (before !== undefined && words === last) before.data.push(...data);
      else joined.push({ ...head, data: [...data] });
      last = words;
    }
    return joined;
  });
}
function outcomeOf(read: () => readonly PushElement[]): unknown {
  try {
    return { elements: read() };
  } catch (thrown) {
    if (!(thrown instanceof PushBodyFault)) throw thrown;
    return { path: thrown.path, words: thrown.path === null ? null : thrown.words };
  }
}

const text = fc.string({ unit: "grapheme", maxLength: 6 });
const reading = fc.record(
  {
    date: text,
    value: fc.double({ noDefaultInfinity: true, noNaN: true }),
    Version: text,
    tags: fc.dictionary(text, text),
    more: fc.json(),
  },
  { requiredKeys: ["date", "value"] },
);
const element = fc.record(
  {
    sourceName: text,
    tags: fc.dictionary(text, text),
    note: fc.jsonValue(),
    list: fc.array(fc.array(fc.integer())),
    data: fc.array(reading, { maxLength: 12 }),
  },
  { requiredKeys: ["data"] },
);
/** Keys in any order, readings before or after what they belong to, in any case. */
const body = fc
  .array(fc.tuple(element, fc.infiniteStream(fc.nat()), fc.constantFrom("data", "Data", "DATA")), {
    maxLength: 5,
  })
  .map((list) =>
    list.map(([one, keys, name], index) =>
      Object.fromEntries(
        Object.entries({ ...one, variableId: index })
          .map(([key, value]) => [key === "data" ? name : key, value] as const)
          .map((entry) => ({ entry, order: keys.next().value ?? 0 }))
          .toSorted((a, b) => a.order - b.order)
          .map(({ entry }) => entry),
      ),
    ),
  );

test("a body read in parts has the elements and readings of the body read as a whole", () => {
  fc.assert(
    fc.property(
      body,
      fc.constantFrom(undefined, 1, "\t"),
      fc.integer({ min: 1, max: 200 }),
      (elements, indent, piece) => {
        const bytes = Buffer.from(JSON.stringify(elements, null, indent));
        expect(inParts(bytes, piece)).toEqual(whole(bytes));
      },
    ),
    { numRuns: 500 },
  );
});

test("a broken body is refused in parts as well as at once", () => {
  const pieces = fc.constantFrom("", "]", "}", "[", "{", ",", '"', "\\", " ", "null", "0", ":", "\u0000");
  const broken = fc
    .tuple(body, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(3), pieces)
    .map(([elements, share, cut, more]) => {
      const json = JSON.stringify(elements);
      const at = Math.floor(share * json.length);
      return json.slice(0, at) + more + json.slice(at + cut);
    });
  fc.assert(
    fc.property(broken, fc.integer({ min: 1, max: 200 }), (json, piece) => {
      const bytes = Buffer.from(json);
      const expected = whole(bytes);
      const actual = inParts(bytes, piece);
      // Of two faults either may be reported: the one that breaks the JSON, or one that was read before it.
      if (JSON.stringify(expected).includes('"elements"')) expect(actual).toEqual(expected);
      else expect(actual).toHaveProperty("path");
    }),
    { numRuns: 1_000 },
  );
});

const LONG = '{"data":[{"date":"a","value":1},{"date":"b","value":2}]}';

test.each([
  ["[]", { elements: [] }],
  [" [ ] \n", { elements: [] }],
  ["\ufeff[]", { elements: [] }],
  ["{}", { path: "", words: "must be an array of elements, and not an object" }],
  ["[] []", { path: null, words: null }],
  ["", { path: null, words: null }],
  ["[", { path: null, words: null }],
  [`[,${LONG}]`, { path: null, words: null }],
  [`[{"data":[]},,${LONG}]`, { path: null, words: null }],
])("the body %j is read in parts as well as at once", (json, expected) => {
  expect(inParts(Buffer.from(json), 1)).toEqual(expected);
  expect(whole(Buffer.from(json))).toEqual(expected);
});

test("a fault deep in a long element names its place", () => {
  const data = Array.from({ length: 500 }, (_, index) => ({
    date: "2026-03-01",
    value: index === 431 ? "x" : index,
  }));
  const bytes = Buffer.from(
    JSON.stringify([
      { variableId: 1, data: [] },
      { variableId: 2, data },
    ]),
  );
  expect(inParts(bytes, 300)).toEqual({ path: "[1].data[431].value", words: 'must be a number, and not "x"' });
});

test("bytes that are not UTF-8 are refused at any place", () => {
  const bytes = Buffer.from(JSON.stringify([{ variableId: 1, data: [{ date: "?", value: 1 }] }]));
  bytes[bytes.indexOf("?")] = 0xff;
  expect(inParts(bytes, 1)).toMatchObject({ path: null });
});
