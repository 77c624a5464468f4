/** The playground: a mapper tried on a sample or on the input of a file, through a running gateway. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parse } from "yaml";
import type { Gateway } from "#gateway/gateway.ts";
import { playgroundEndpoints as endpoints } from "#gateway/operations/api/playground.ts";
import { GatewayRig, trigger, until } from "../../runs/gateway-rig.ts";
import { call, refusal } from "./calls.ts";

const CSV = "When;Meter;kWh\n01/03/2026 00:00;M-1;1,5\n01/03/2026 01:00;M-1;2,5\n01/03/2026 02:00;M-2;oops\n";
const SETTINGS = {
  delimiter: ";",
  decimal: ",",
  timeZone: "Europe/Brussels",
  date: { column: "When", format: "dd/MM/yyyy HH:mm" },
  target: { sourceSerialNumber: "{Meter}", mappingConfig: "kWh" },
  value: "kWh",
  unit: "kWh",
};
const OWN = `import { defineMapper } from "headgate/mapper";
export default defineMapper({
  name: "own",
  version: "1.2.0",
  summary: "Two values",
  async map({ file, emit, log }) {
    log.info("read " + file.name);
    for await (const [line] of file.lines())
      emit({
        target: { sourceSerialNumber: "M-1", mappingConfig: "v" },
        date: "2026-03-01T00:00:00Z",
        value: Number(line.text),
        row: line.row,
      });
  },
});
`;

let rig: GatewayRig;
let gateway: Gateway;

beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.put("mappers/own/mapper.js", OWN);
  gateway = await rig.open({ triggers: [trigger("readings", { mapper: "delimited", metadata: SETTINGS })] });
});
afterEach(() => rig.close());

const sampleOf = async (text: string, name = "field.csv") =>
  (await call(gateway, endpoints.addSample, { query: { name }, body: Buffer.from(text) })).sample;

it("lists the mappers with the schemas of their settings", async () => {
  const mappers = await call(gateway, endpoints.mappers);
  expect(mappers.find(({ name }) => name === "own")).toMatchObject({ version: "1.2.0", isBundled: false, cases: [] });
  const delimited = mappers.find(({ name }) => name === "delimited");
  expect(delimited).toMatchObject({ isBundled: true, settings: { properties: { date: {} } } });
  expect(delimited?.cases.length).toBeGreaterThan(0);
});

it("maps a sample to readings with their rows, and shows the refused row and the payload", async () => {
  const request = { sample: await sampleOf(CSV), mapper: "delimited", settings: SETTINGS };
  const strict = await call(gateway, endpoints.map, { body: request });
  expect(strict).toMatchObject({ status: "failed", points: 0, readings: [], payload: null });
  expect(strict.problems[0]).toMatchObject({ code: "HG-MAP-005", place: { row: 4, column: "kWh" } });

  const lenient = await call(gateway, endpoints.map, { body: { ...request, rows: "lenient", rejectShare: 1 } });
  expect(lenient).toMatchObject({
    status: "mapped",
    mapper: { name: "delimited" },
    points: 2,
    period: { from: "2026-02-28T23:00:00Z", to: "2026-03-01T00:00:00Z" },
    refusedCount: 1,
    refused: [{ place: { row: 4, column: "kWh", text: "oops" } }],
  });
  expect(lenient.targets).toEqual([
    {
      target: "sourceSerialNumber=M-1 mappingConfig=kWh",
      points: 2,
      unit: "kWh",
      from: "2026-02-28T23:00:00Z",
      to: "2026-03-01T00:00:00Z",
    },
  ]);
  expect(lenient.readings).toMatchObject([
    { date: "2026-02-28T23:00:00Z", value: 1.5, row: 2 },
    { date: "2026-03-01T00:00:00Z", value: 2.5, row: 3 },
  ]);
  expect(JSON.parse(lenient.payload ?? "")).toMatchObject([{ sourceSerialNumber: "M-1", data: [{ value: 1.5 }, {}] }]);
  expect(parse(lenient.trigger)).toMatchObject([
    { mapper: "delimited", rows: "lenient", metadata: { decimal: "," }, fileNamePatternMatches: [{ value: ".csv" }] },
  ]);
});

it("shows the rows of a sample", async () => {
  const params = { sample: await sampleOf(CSV) };
  const page = await call(gateway, endpoints.sampleInput, { params, query: { from: 2, rows: 2 } });
  expect(page).toMatchObject({
    kind: "text",
    isLast: false,
    lines: [
      { row: 2, text: "01/03/2026 00:00;M-1;1,5" },
      { row: 3, text: "01/03/2026 01:00;M-1;2,5" },
    ],
  });
  const unknown = { params: { sample: "none" } };
  expect(await refusal(gateway, endpoints.sampleInput, unknown)).toMatchObject({ status: 404 });
});

it("says which setting does not fit, and which mapper and which sample are unknown", async () => {
  const sample = await sampleOf(CSV);
  const answer = await call(gateway, endpoints.map, {
    body: { sample, mapper: "delimited", settings: { valeu: "x" } },
  });
  expect(answer.problems[0]).toMatchObject({ code: "HG-MAP-004", message: expect.stringContaining("valeu") });
  expect(await refusal(gateway, endpoints.map, { body: { sample, mapper: "none" } })).toMatchObject({ status: 400 });
  const unknown = { body: { sample: "none", mapper: "delimited" } };
  expect(await refusal(gateway, endpoints.map, unknown)).toMatchObject({ status: 404, code: "HG-OPS-004" });
});

it("maps the input of a quarantined file with corrected settings, and the file stays as it is", async () => {
  rig.put("in/wrong.csv", CSV.replace("oops", "3,5").replaceAll("/", "."));
  await until(
    "the file is quarantined",
    async () => (await gateway.ledger.recentRuns(1, ["quarantined"])).length === 1,
  );
  const [run] = await gateway.ledger.recentRuns(1);
  const settings = { ...SETTINGS, date: { column: "When", format: "dd.MM.yyyy HH:mm" } };
  const answer = await call(gateway, endpoints.map, { body: { file: run?.arrivalId, mapper: "delimited", settings } });
  expect(answer).toMatchObject({ status: "mapped", points: 3, targetCount: 2, problems: [] });
  expect((await gateway.ledger.recentRuns(9)).map(({ state }) => state)).toEqual(["quarantined"]);
});

it("answers only the newest of two requests of one person", async () => {
  rig.put(
    "mappers/slow.js",
    OWN.replace('"own"', '"slow"').replace("log.info", "while (file.name === 'a') {} log.info"),
  );
  const sample = await sampleOf("1\n");
  const first = refusal(gateway, endpoints.map, { body: { sample, mapper: "slow", fileName: "a" } });
  // The first is in progress once its process has started; before that it is ended just the same.
  const second = call(gateway, endpoints.map, { body: { sample, mapper: "slow", fileName: "b" } });
  const answers = await Promise.all([first, second]);
  expect(answers[0]).toMatchObject({ status: 409, code: "HG-OPS-010" });
  expect(answers[1]).toMatchObject({ status: "mapped", points: 1, log: ["read b"] });
});

it("proposes settings for a sample, once the zone of its dates is known", async () => {
  const sample = await sampleOf(CSV.replace("oops", "3,5"));
  const without = await call(gateway, endpoints.propose, { body: { sample } });
  expect(without).toMatchObject({
    needsZone: true,
    columns: ["When", "Meter", "kWh"],
    declarative: null,
    source: null,
  });
  const timeZone = "Europe/Brussels";
  const proposed = await call(gateway, endpoints.propose, { body: { sample, timeZone } });
  expect(proposed).toMatchObject({ needsZone: false, declarative: { mapper: "delimited" } });
  expect(proposed.source).toContain("defineMapper");
  const { mapper = "", settings = {} } = proposed.declarative ?? {};
  expect(await call(gateway, endpoints.map, { body: { sample, mapper, settings } })).toMatchObject({ points: 3 });
});

it("says in words why it cannot propose settings for a sample, by the name of its file", async () => {
  for (const [name, text, words] of [
    ["a.xlsx", "no workbook", "the sample cannot be read"],
    ["b.csv", 'a;b\n1;"open\n', ""],
    ["c.json", '{"a\\x":[{"b":1}]}', ""],
    ["d.csv", "prose", "no table of rows"],
  ] as const) {
    const refused = await refusal(gateway, endpoints.propose, { body: { sample: await sampleOf(text, name) } });
    expect(refused).toMatchObject({ status: 409, subject: name, detail: expect.stringContaining(words) });
    expect(JSON.stringify(refused)).not.toMatch(/spool.samples|headgate mapper/);
  }
});

it("refuses names of mappers that are too long, and of new ones that are no names", async () => {
  const sample = await sampleOf(CSV);
  const mapper = "x".repeat(100_000);
  expect(await refusal(gateway, endpoints.map, { body: { sample, mapper } })).toMatchObject({ status: 400 });
  for (const name of ["*/", "../../x", "a b"])
    expect(await refusal(gateway, endpoints.propose, { body: { sample, name } })).toMatchObject({ status: 400 });
  const named = { sample, name: "own-format", timeZone: "UTC" };
  expect((await call(gateway, endpoints.propose, { body: named })).source).toContain("own-format");
});

it("adds a sample to the cases of a mapper of one's own, and to no bundled one", async () => {
  const sample = await sampleOf("1.5\n", "own.txt");
  const given = { sample, mapper: "own", name: "first" };
  const added = await call(gateway, endpoints.addCase, { body: given });
  expect(added.file).toBe("expected.json");
  const folder = join(rig.folder, "mappers/own/cases/first");
  expect(JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"))).toMatchObject([{ data: [{ value: 1.5 }] }]);
  expect(parse(readFileSync(join(folder, "settings.yaml"), "utf8"))).toEqual({ $fileName: "own.txt" });

  const again = await refusal(gateway, endpoints.addCase, { body: given });
  expect(again).toMatchObject({ status: 409, code: "HG-OPS-011", detail: expect.stringContaining("already") });
  const bundled = await refusal(gateway, endpoints.addCase, { body: { ...given, mapper: "delimited", name: "mine" } });
  expect(bundled).toMatchObject({ status: 409, code: "HG-OPS-011" });
});

it("says that the folder of a mapper cannot be written, and adds nothing", async () => {
  const sample = await sampleOf("1.5\n", "own.txt");
  // The place of the cases is taken, as where the user of the gateway may not write.
  rig.put("mappers/own/cases", "a file");
  const refused = await refusal(gateway, endpoints.addCase, { body: { sample, mapper: "own", name: "first" } });
  expect(refused).toMatchObject({
    status: 409,
    code: "HG-OPS-011",
    detail: expect.stringContaining("cannot be written"),
  });
});

it("adds no case whose result depends on the time", async () => {
  rig.put("mappers/own/mapper.js", OWN.replace("Number(line.text)", "Date.now()"));
  const sample = await sampleOf("1.5\n", "own.txt");
  const refused = await refusal(gateway, endpoints.addCase, { body: { sample, mapper: "own", name: "first" } });
  expect(refused).toMatchObject({ code: "HG-OPS-011", detail: expect.stringContaining("same result") });
  expect(existsSync(join(rig.folder, "mappers/own/cases/first"))).toBe(false);
});
