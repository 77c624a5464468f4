import fc from "fast-check";
import { expect, test } from "vitest";
import { countReadings, readPushBody, scanReadings } from "#wire/index.ts";

function scanned(text: string | Uint8Array): number | null {
  const scan = scanReadings(typeof text === "string" ? Buffer.from(text) : text);
  for (;;) {
    const turn = scan.next();
    if (turn.done === true) return turn.value;
  }
}

/** Null when it is refused. */
function parsed(bytes: Uint8Array): number | null {
  try {
    return countReadings(readPushBody(bytes));
  } catch {
    // The reason does not matter: the body must not be counted.
    return null;
  }
}

const text = fc.stringMatching(/^[ -!#-[\]-~é€]{0,8}$/);
const reading = fc.record(
  { date: text, value: fc.double({ noNaN: true, noDefaultInfinity: true }), version: text },
  { requiredKeys: ["date", "value"] },
);
const element = fc.record(
  {
    variableId: fc.integer(),
    sourceId: fc.integer(),
    variableTypeId: fc.integer(),
    sourceSerialNumber: text,
    sourceEan: text,
    sourceName: text,
    meterNumber: text,
    mappingConfig: text,
    version: text,
    data: fc.array(reading, { maxLength: 5 }),
  },
  { requiredKeys: ["data"] },
);
const body = fc
  .tuple(fc.array(element, { maxLength: 4 }), fc.constantFrom(undefined, 1, "\t"))
  .map(([elements, indent]) => JSON.stringify(elements, null, indent));

test("a body of the plain form is counted as the parser counts it", () => {
  fc.assert(
    fc.property(body, (one) => {
      const count = scanned(one);
      // Numbers with an exponent are left to the parser.
      if (/\de[+-]?\d/.test(one)) return;
      expect(count).toBe(parsed(Buffer.from(one)));
      expect(count).not.toBeNull();
    }),
    { numRuns: 300 },
  );
});

test("a counted body is never one that the parser would refuse or count otherwise", () => {
  const piece = fc.constantFrom(
    ...'[]{},:"\\-.0e \n1',
    "",
    "null",
    "01",
    "1.",
    '"data":[]',
    '"date":"x"',
    '"value":1e999',
    '"tags":{}',
    '"accountId":1',
    "\u0001",
    "é",
    "99999999999999999",
  );
  const mutated = fc
    .tuple(body, fc.array(fc.tuple(fc.nat(), fc.nat(6), piece), { minLength: 1, maxLength: 3 }))
    .map(([one, changes]) =>
      changes.reduce((now, [at, length, put]) => {
        const from = at % (now.length + 1);
        return now.slice(0, from) + put + now.slice(from + length);
      }, one),
    );
  fc.assert(
    fc.property(mutated, (one) => {
      const count = scanned(one);
      if (count !== null) expect(count).toBe(parsed(Buffer.from(one)));
    }),
    { numRuns: 6_000 },
  );
});

test.each([
  '[{"data":[{"date":"a","value":1}],"data":[]}]',
  '[{"variableId":1}]',
  '[{"variableId":1,"data":[]},]',
  '[{"data":[{"date":"a"}]}]',
  '[{"data":[{"date":"a","value":"1"}]}]',
  '[{"variableId":1.5,"data":[]}]',
  '[{"sourceName":"a\\"b","data":[]}]',
  "[]x",
  "{}",
  "",
])("%s is left to the parser", (one) => {
  expect(scanned(one)).toBeNull();
});

test("bytes that are not UTF-8 are left to the parser", () => {
  const bytes = Buffer.from('[{"sourceName":"?","data":[]}]');
  bytes[bytes.indexOf(0x3f)] = 0xff;
  expect(scanned(bytes)).toBeNull();
});
