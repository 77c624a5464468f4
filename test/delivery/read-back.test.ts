import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PushElement, Run } from "#gateway/model.ts";
import type { Variable } from "#wire/index.ts";
import { json } from "./scripted-service.ts";
import { element, never, type Setup, setUp } from "./setup.ts";

let setup: Setup;
beforeEach(async () => {
  setup = await setUp();
});
afterEach(() => setup.close());

const source = (id: number, serialNumber: string) => ({ id, name: `source ${id}`, siteId: 1, serialNumber });
const variable = (id: number, sourceId: number, more: Partial<Variable> = {}): Variable => ({
  id,
  name: `variable ${id}`,
  sourceId,
  mappingConfig: "kWh",
  ...more,
});

async function delivered(...batches: PushElement[][]): Promise<{ run: Run; segmentPath: string }> {
  const opened = await setup.run("r1", batches);
  expect(await setup.delivery.deliver(opened.run, opened.segmentPath, never)).toMatchObject({
    status: "accepted",
  });
  return opened;
}

const rowsOf = (variableId: number, { data }: PushElement, version?: string) =>
  data.map(({ date, value }) => ({
    variableId,
    date: date.replace(".000Z", "+00:00"),
    rawValue: value,
    ...(version === undefined ? {} : { version }),
  }));

describe("reading back", () => {
  it("reports every reading as stored when date and value match, over several pages", async () => {
    const [one, other] = [element("A", 40), element("B", 5)];
    setup.service.sources = [source(1, "A"), source(2, "B")];
    setup.service.variables = [variable(11, 1, { mappingConfig: "other" }), variable(12, 1), variable(22, 2)];
    setup.service.rows = [...rowsOf(12, one), ...rowsOf(22, other)];
    setup.service.rowsPerPage = 7;
    const { run, segmentPath } = await delivered([one], [other]);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({
      status: "read",
      missing: 0,
      outcomes: [
        { operationId: "r1-1", by: "read-back", received: 40, stored: 40, discarded: [] },
        { operationId: "r1-2", by: "read-back", received: 5, stored: 5, discarded: [] },
      ],
    });
    expect(setup.service.callsTo("/base/data").length).toBeGreaterThan(5);
  });

  it("distinguishes unknown variables, missing readings and other values, by target", async () => {
    const [gone, short, changed] = [element("A", 3), element("B", 3), element("C", 3)];
    setup.service.sources = [source(2, "B"), source(3, "C")];
    setup.service.variables = [variable(22, 2), variable(33, 3)];
    setup.service.rows = [
      ...rowsOf(22, short).slice(1),
      ...rowsOf(33, changed).map((row, index) => (index === 0 ? { ...row, rawValue: -1 } : row)),
    ];
    const { run, segmentPath } = await delivered([gone, short, changed]);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({
      missing: 5,
      outcomes: [
        {
          received: 9,
          stored: 4,
          discarded: [
            { target: "sourceSerialNumber=A mappingConfig=kWh", reason: "unknown variable", points: 3 },
            { target: "sourceSerialNumber=B mappingConfig=kWh", reason: "not stored", points: 1 },
            { target: "sourceSerialNumber=C mappingConfig=kWh", reason: "value differs", points: 1 },
          ],
        },
      ],
    });
  });

  it("reads only the missing readings when it is called again", async () => {
    const [one, other] = [element("A", 4), element("B", 4)];
    setup.service.sources = [source(1, "A"), source(2, "B")];
    setup.service.variables = [variable(12, 1), variable(22, 2)];
    setup.service.rows = rowsOf(12, one);
    const { run, segmentPath } = await delivered([one], [other]);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({ missing: 4 });
    const asked = setup.service.callsTo("/base/data").length;
    setup.service.rows = rowsOf(22, other);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({
      missing: 0,
      outcomes: [{ stored: 4 }, { stored: 4 }],
    });
    expect(setup.service.callsTo("/base/data")).toHaveLength(asked + 1);
  });

  it("finds a variable that was created since the last call", async () => {
    const pushed = element("A", 3);
    const { run, segmentPath } = await delivered([pushed]);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({ missing: 3 });
    setup.service.sources = [source(1, "A")];
    setup.service.variables = [variable(12, 1)];
    setup.service.rows = rowsOf(12, pushed);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({ missing: 0 });
  });

  it("requests the version of a versioned variable: an equal value of another version does not count", async () => {
    const pushed = { ...element("A", 3), version: "V2" };
    setup.service.sources = [source(1, "A")];
    setup.service.variables = [variable(12, 1, { isVersioned: true })];
    setup.service.rows = [...rowsOf(12, pushed, "V1"), ...rowsOf(12, pushed, "V2").slice(0, 1)];
    const { run, segmentPath } = await delivered([pushed]);
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({ missing: 2 });
    setup.service.rows = rowsOf(12, pushed, "V2");
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({ missing: 0 });
  });

  it(
    "follows the service where several sources have one serial number: the first variable that fits " + "counts",
    async () => {
      const pushed = element("A", 2);
      setup.service.sources = [source(5, "A"), source(3, "A")];
      setup.service.variables = [variable(51, 5), variable(90, 3), variable(80, 3)];
      setup.service.rows = rowsOf(80, pushed);
      const { run, segmentPath } = await delivered([pushed]);
      expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({ missing: 0 });
    },
  );

  it("reads variables named by their id, and leaves out operations whose outcome is known", async () => {
    const { data } = element("", 2);
    setup.service.variables = [variable(12, 1)];
    setup.service.rows = rowsOf(12, { data });
    const { run, segmentPath } = await delivered([{ variableId: 12, data }], [{ variableId: 13, data }]);
    setup.journal.set("r1-2", {
      outcome: { operationId: "r1-2", by: "webhook", received: 2, stored: 2, discarded: [], at: "" },
    });
    const read = await setup.delivery.readBack(run, segmentPath, never);
    expect(read).toMatchObject({ missing: 0, outcomes: [{ operationId: "r1-1", stored: 2 }] });
  });

  it.each([
    ["no right to read", json(403, { title: "Forbidden", status: 403 }), "Forbidden"],
    ["the service is down", { status: 503 }, "503"],
    ["the answer has another shape", json(200, { rows: [] }), "another shape"],
  ])("reports why the outcome is unknown: %s", async (_, reply, words) => {
    const { run, segmentPath } = await delivered([element("A", 3)]);
    setup.service.readReply = reply;
    expect(await setup.delivery.readBack(run, segmentPath, never)).toMatchObject({
      status: "unknown",
      reason: expect.stringContaining(words),
    });
  });
});
