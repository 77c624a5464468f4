/**
 * Elements of the usual form, whose bytes become columns, have the same points and outcomes as when all of them are
 * read by `JSON.parse`: over generated bodies, each of which comes twice, since targets are first learned.
 */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { systemClock } from "#core/clock.ts";
import { applyOperations } from "#hub/push/apply.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import type { IngestTransaction, QueuedOperation } from "#hub/store/ingest.ts";
import type { VariableFacts } from "#hub/store/records.ts";
import { TargetBytes, type TargetQuery } from "#hub/store/targets.ts";

const CAPACITY = 20;
const NOW_MS = Date.UTC(2026, 2, 1);
const clock = { ...systemClock, now: () => Temporal.Instant.fromEpochMilliseconds(NOW_MS) };

interface Stored {
  readonly variableId: number;
  readonly operation: number;
  readonly atMs: number;
  readonly value: number;
  readonly labels: unknown;
}

function variableOf({ by, value, mappingConfig }: TargetQuery): VariableFacts | null {
  const text = `${by} ${value} ${mappingConfig}`;
  if (text.includes("missing")) return null;
  const facts = { accountId: 1, sourceId: 1, unitId: 8, isVersioned: false, versionsMax: null };
  const id = [...text].reduce((sum, letter) => sum + (letter.codePointAt(0) ?? 0), 0);
  const isCalculated = text.includes("calculated");
  return { ...facts, id, isCalculated, sourceZoneId: "Europe/Paris", siteZoneId: "Europe/Paris" };
}

/** Applies bodies in groups of one account, one group after the other. */
async function applied(targets: TargetBytes, groups: readonly (readonly string[])[]) {
  const stored: Stored[] = [];
  const transaction: IngestTransaction = {
    outputOf: async () => null,
    findVariable: async (_accountId, target) => variableOf(target),
    written: () => targets,
    async write(readings) {
      for (let index = 0; index < readings.length; index += 1)
        stored.push({
          variableId: readings.variables[readings.variable[index] ?? 0]?.id ?? 0,
          operation: readings.operation[index] ?? 0,
          atMs: readings.atMs[index] ?? 0,
          value: readings.value[index] ?? 0,
          labels: readings.labelsOf(index),
        });
      return { replaced: [], damaged: [] };
    },
  };
  const columns = new ReadingColumns(CAPACITY);
  const parts = { discardsMax: 50, horizon: { byDefault: 86_400_000, byAccount: new Map() }, clock, columns };
  const outcomes = [];
  for (const bodies of groups) {
    const operations = bodies.map(
      (body, seq): QueuedOperation => ({
        ...{ seq, accountId: 1, userId: 1, operationId: `${seq}`, timeoutSec: 60, received: 0, calculationId: null },
        ...{ acceptedMs: 0, traceLink: null, body: Buffer.from(body) },
      }),
    );
    outcomes.push(await applyOperations(transaction, operations, parts));
  }
  return { stored, outcomes };
}

const date = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 96 }).map((step) => iso(step * 900_000)) },
  fc.integer({ min: 0, max: 86_400_000 }).map((ms) => new Date(NOW_MS - ms).toISOString()),
  fc.constantFrom(
    ...["2026-02-28T24:00:00Z", "2026-02-30T00:00:00Z", "2026-03-09T00:00:00Z", "0099-01-01T00:00:00Z"],
    ...["2026-02-28T10:60:00Z", "2026-02-28T10:00:00", "2026-02-28", "2026-02-28T10:00:00+01:00", "x"],
    ...["2026-02-28T10:00:00.1234Z", "2026-02-28T10:00:00.12Z", "2026-02-28 10:00:00Z", "2026-02-28T10:00:00.99Z "],
    ...["2026-02-28T1a:00:00Z", "2026-02-28T10:00:00.0a0Z", "2026-02-28T10-00:00Z", "2026-02-28T10:00:00Y"],
  ),
);
const value = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc.double({ min: -1_000, max: 1_000, noNaN: true }).map((number) => JSON.stringify(number)),
  fc.integer({ min: -9_999_999, max: 9_999_999 }).map((number) => String(number / 1_000)),
  fc.constantFrom("0", "-0", "-0.0", "0.10", "1e3", "1E-2", "123456789012345", "1234567890123456", "0.000001", "1e999"),
  fc.constantFrom("999999999999.999", "0.123456789012345", "99999999999999999999.5", "-12.50"),
);
const blank = fc.constantFrom(...Array.from({ length: 12 }, () => ""), " ", "\n");
const reading = fc
  .record({ date, value, blank })
  .chain(({ date, value, blank }) =>
    fc.constantFrom(
      ...Array.from({ length: 30 }, () => `{"date":"${date}","value":${value}}`),
      `{"date":"${date}","value":${value}}${blank}`,
      `{${blank}"date":"${date}","value":${value}}`,
      `{"date":"${date}",${blank}"value":${value}${blank}}`,
      `{"value":${value},"date":"${date}"}`,
      `{"date":"${date}","value":${value},"version":"v"}`,
      `{"Date":"${date}","value":${value},"tags":{"a":"]}"}}`,
      `{"date":"${date}","value":${value},"more":[{"data":[1]}]}`,
    ),
  );
const target = fc.constantFrom(
  ...Array.from({ length: 12 }, (_, index) => `"sourceSerialNumber":"M-${index % 3}","mappingConfig":"kWh"`),
  ...['"sourceSerialNumber":"M-1","mappingConfig":"kWh"', '"sourceSerialNumber":"M-2","mappingConfig":"kWh"'],
  ...['"sourceSerialNumber":"M-3","mappingConfig":"kWh"', '"sourceSerialNumber":"M-22","mappingConfig":"kWh"'],
  ...['"sourceSerialNumber":"missing","mappingConfig":"kWh"', '"sourceSerialNumber":"calculated","mappingConfig":"a"'],
  ...['"variableId":7', '"variableId":0', '"sourceEan":"é\\u0041\\"data\\":[","mappingConfig":"k"'],
  ...['"SourceSerialNumber":"M-1","mappingConfig":"kWh"', '"sourceSerialNumber":"M-1"', '"mappingConfig":null'],
  ...['"sourceSerialNumber":"M-1","mappingConfig":"kWh","version":"v"', '"sourceEan":"E","variableTypeId":3'],
  ...['"sourceSerialNumber":"M-1","mappingConfig":"kWh","tags":{"data":"x"}', '"x":{"data":[1]},"variableId":7'],
);
/** Names that follow the readings. */
const more = fc.constantFrom(
  ...Array.from({ length: 30 }, () => ""),
  ...[',"variableId":7', ',"sourceSerialNumber":"M-1"', ',"VariableId":7', ',"sourceEan":"E"', ',"sourceEan":null'],
  ...[',"version":"v"', ',"tags":{"a":"b"}', ',"mappingConfig":"kWh"', ',"data":[]'],
);
const element = fc
  .record({ target, readings: fc.array(reading, { maxLength: 4 }), blank, more, isFirst: fc.nat({ max: 9 }) })
  .map(({ target, readings, blank, more, isFirst }) => {
    const data = `"data":[${readings.join(",")}]`;
    return isFirst === 0 ? `{${data},${target}}` : `{${blank}${target},${data}${more}${blank}}`;
  });
const body = fc
  .record({ elements: fc.array(element, { maxLength: 6 }), blank })
  .map(({ elements, blank }) => `${blank}[${elements.join(`,${blank}`)}${blank}]`);

function iso(beforeMs: number): string {
  return new Date(NOW_MS - beforeMs).toISOString().replace(".000", "");
}

test("the same points and outcomes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 4 }), async (bodies) => {
      // The second time their targets are known, also in another order.
      const groups = [bodies, bodies, bodies.toReversed()];
      // With a blank at its beginning, a body is read as a whole.
      const whole = groups.map((all) => all.map((body) => ` ${body}`));
      expect(await applied(new TargetBytes(), groups)).toEqual(await applied(new TargetBytes(), whole));
    }),
    { numRuns: 2_000 },
  );
});

test("elements of known targets are not parsed", async () => {
  let calls = 0;
  const targets = new (class extends TargetBytes {
    override find(...given: Parameters<TargetBytes["find"]>) {
      const found = super.find(...given);
      if (found !== undefined) calls += 1;
      return found;
    }
  })();
  const data = `"data":[{"date":"${iso(0)}","value":1.5},{"date":"${iso(900_000)}","value":-2}]`;
  const known = ["M-1", "M-2"].map((name) => `{"sourceSerialNumber":"${name}","mappingConfig":"kWh",${data}}`);
  const { stored, outcomes } = await applied(targets, [[`[${known}]`], [`[${known}]`]]);
  // The first time, after their beginnings were parsed.
  expect(calls).toBe(4);
  expect(outcomes.flat()).toMatchObject([
    { received: 4, stored: 4 },
    { received: 4, stored: 4 },
  ]);
  expect(stored.map(({ value }) => value)).toEqual([1.5, -2, 1.5, -2, 1.5, -2, 1.5, -2]);
});

test("of an element that names a variable for the first time, only the beginning is parsed", async () => {
  const parse = vi.spyOn(JSON, "parse");
  const element = (name: string) =>
    `{"sourceSerialNumber":"${name}","mappingConfig":"kWh","data":[{"date":"${iso(0)}","value":1.5}]}`;
  const { stored, outcomes } = await applied(new TargetBytes(), [[`[${["M-1", "missing", "M-2"].map(element)}]`]]);
  const whole = parse.mock.calls.filter(([text]) => text.includes("date"));
  parse.mockRestore();
  expect(whole.map(([text]) => text)).toEqual([`[${element("missing")}]`]);
  expect(outcomes.flat()).toMatchObject([{ received: 3, stored: 2, discarded: [{ count: 1 }] }]);
  expect(stored).toHaveLength(2);
});
