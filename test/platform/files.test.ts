/** Files that the hub takes become readings by its own gateway. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { headgate } from "../runs/in-process.ts";
import { workbook, zip } from "./contents.ts";
import { type PlatformRig, SECOND, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

test("the triggers of every account are ready from the start", async () => {
  const parts = (await rig.platform().gateway?.view.health()) ?? [];
  const triggers = parts.filter(({ part }) => part.startsWith("triggers of"));
  expect(triggers.map(({ part, ready }) => [part, ready])).toEqual([
    ["triggers of account-1", true],
    ["triggers of account-2", true],
  ]);
});

describe("an uploaded file becomes stored readings", () => {
  test("in the standard format, and names its run and trigger", async () => {
    const variableId = await rig.variable("S-1");
    const trigger = await rig.trigger("std_", "standard");
    const id = await rig.store("in/std_1.csv", standardCsv("S-1", DATE, 12.5));
    const file = await rig.became(id, "stored");
    expect(file).toMatchObject({ triggerId: trigger, reason: null, run: expect.any(String) });
    expect(Object.values(await rig.values(variableId))).toEqual([12.5]);
    const { ledger } = rig.platform().gateway ?? {};
    const run = await ledger?.run(String(file["run"]));
    expect(run).toMatchObject({ state: "confirmed", path: `${id}/std_1.csv` });
    const [batch] = (await ledger?.batches(String(file["run"]))) ?? [];
    expect(batch?.operationId).toMatch(new RegExp(`^file-${id}[-.]`));
  });

  test("as a workbook", async () => {
    const variableId = await rig.variable("X-1");
    await rig.trigger("book_", "standard");
    const rows = [
      ["date", "value", "source_serial_number", "mapping_config"],
      [DATE, 4.25, "X-1", "kWh"],
    ];
    const id = await rig.store("book_1.xlsx", await workbook(rows));
    await rig.became(id, "stored");
    expect(Object.values(await rig.values(variableId))).toEqual([4.25]);
  });

  test("in a vendor's format, with the settings of its trigger", async () => {
    const variableId = await rig.variable("V-1");
    const target = { sourceSerialNumber: "{meter}", mappingConfig: "kWh" };
    const metadata = {
      delimiter: ";",
      timeZone: "UTC",
      date: { column: "when", format: "dd.MM.yyyy HH:mm" },
      values: [{ column: "energy", target }],
    };
    await rig.trigger("vendor_", "delimited", { metadata });
    const id = await rig.store("vendor_1.csv", "when;meter;energy\n01.03.2026 00:00;V-1;7\n01.03.2026 00:15;V-1;8\n");
    await rig.became(id, "stored");
    expect(Object.values(await rig.values(variableId))).toEqual([7, 8]);
  });

  test("from each file of a ZIP, of which some may be unclaimed", async () => {
    const ids = [await rig.variable("Z-1"), await rig.variable("Z-2")];
    await rig.trigger("packed_", "standard");
    const files = { "packed_1.csv": standardCsv("Z-1", DATE, 1), "packed_2.csv": standardCsv("Z-2", DATE, 2) };
    const id = await rig.store("all.zip", await zip(files));
    expect(await rig.became(id, "stored")).toMatchObject({ reason: null, run: expect.any(String) });
    const values = await Promise.all(ids.map(async (one) => Object.values(await rig.values(one))));
    expect(values).toEqual([[1], [2]]);
    const mixed = await rig.store("mixed.zip", await zip({ ...files, "readme.md": "x" }));
    const file = await rig.became(mixed, "stored");
    expect(file["reason"]).toMatch(/^1 of 3 files in it: readme\.md: no trigger claims it$/);
  });

  test("that was pushed in the sender's own format, by the trigger of its token", async () => {
    const variableId = await rig.variable("G-1");
    const body = { name: "pushed", ingestionType: "SendViaHttp", mapping: "standard" };
    const triggerId = await rig.post("/fileTrigger", body);
    const { token } = await rig.get(`/fileTrigger/${triggerId}`);
    const pushed = await rig.call("POST", `/push/api/generic/${token}`, {
      raw: standardCsv("G-1", DATE, 3),
      headers: { "content-type": "text/csv" },
    });
    expect(pushed.status).toBe(200);
    await rig.became(pushed.body.id, "stored");
    expect(Object.values(await rig.values(variableId))).toEqual([3]);
  });
});

describe("a file that does not", () => {
  test("is unclaimed until it is offered again, also when a trigger is made meanwhile", async () => {
    const variableId = await rig.variable("U-1");
    const id = await rig.store("late_1.csv", standardCsv("U-1", DATE, 5));
    const unclaimed = await rig.became(id, "unclaimed");
    expect(unclaimed).toMatchObject({
      reason: expect.stringMatching(/^no trigger claims it: trigger 1: StartsWith/),
      run: null,
      triggerId: null,
    });
    const trigger = await rig.trigger("late_", "standard");
    const next = await rig.store("late_2.csv", standardCsv("U-1", "2026-03-02T00:00:00Z", 6));
    await rig.became(next, "stored");
    expect(await rig.get(`/storage/${id}`)).toMatchObject({ state: "unclaimed" });
    await rig.ok("POST", `/storage/${id}/process`);
    expect(await rig.became(id, "stored")).toMatchObject({ triggerId: trigger });
    expect(Object.values(await rig.values(variableId))).toEqual([5, 6]);
  });

  test("is quarantined with code and place when it is broken, and can be offered again", async () => {
    await rig.trigger("broken_", "standard");
    const id = await rig.store("broken_1.csv", `${standardCsv("S-1", DATE, "many")}`);
    const file = await rig.became(id, "quarantined");
    expect(file).toMatchObject({ reason: expect.stringMatching(/^HG-MAP-\d+: .*row 2/), run: expect.any(String) });
    await rig.ok("POST", `/storage/${id}/process`);
    await expect.poll(async () => (await rig.get(`/storage/${id}`)).run).not.toBe(file["run"]);
    const again = await rig.became(id, "quarantined");
    expect(again["run"]).not.toBe(file["run"]);
  });

  test("is quarantined when its trigger names a mapper that the hub does not have", async () => {
    const trigger = await rig.trigger("nobody_", "no-such-mapper");
    const id = await rig.store("nobody_1.csv", "x");
    const why = "names the mapping no-such-mapper, and there is no mapper for it here";
    const reason = `HG-TRIG-003: the trigger ${trigger} ${why}`;
    expect(await rig.became(id, "quarantined")).toMatchObject({ reason });
  });

  test("is given up when it is removed while it is held, also by a hub that died then", async () => {
    await rig.variable("H-1");
    await rig.trigger("held_", "meter-index", { metadata: { timeZone: "UTC", mappingConfig: "kWh" } });
    // The unit differs from that of the variable.
    const content = `serial_number,date,index,unit\nH-1,${DATE},5,m3\n`;
    const held = async (name: string) => {
      const id = await rig.store(name, content);
      await expect.poll(async () => (await rig.get(`/storage/${id}`)).reason).not.toBeNull();
      return { id, run: String((await rig.get(`/storage/${id}`)).run) };
    };
    const stateOf = async (run: string) => (await rig.platform().gateway?.ledger.run(run))?.state;
    const removed = await held("held_1.csv");
    expect(await stateOf(removed.run)).toBe("held");
    await rig.ok("DELETE", "/storage", { query: { ids: removed.id } });
    expect(await stateOf(removed.run)).toBe("cancelled");
    const left = await held("held_2.csv");
    await rig.platform().inside.store.files.remove(1, [left.id]);
    expect(await stateOf(left.run)).toBe("held");
    await headgate("recheck", left.run, "-c", rig.config);
    await expect.poll(() => stateOf(left.run)).toBe("cancelled");
    const asked = await held("held_3.csv");
    await rig.platform().inside.store.files.remove(1, [asked.id]);
    const { code, stderr } = await headgate("release", asked.run, "-c", rig.config);
    expect([code, stderr]).toEqual([1, expect.stringContaining("its stored file was removed")]);
    expect(await stateOf(asked.run)).toBe("cancelled");
  });

  test("is discarded, in part or whole, when its variables are unknown", async () => {
    const variableId = await rig.variable("D-1");
    await rig.trigger("part_", "standard");
    const [header, line] = standardCsv("D-1", DATE, 1).split("\n");
    const unknown = `${DATE},2,D-unknown,kWh`;
    const part = await rig.store("part_1.csv", [header, line, unknown].join("\n"));
    expect(await rig.became(part, "partly-discarded")).toMatchObject({ reason: expect.stringContaining("D-unknown") });
    expect(Object.values(await rig.values(variableId))).toEqual([1]);
    const whole = await rig.store("part_2.csv", [header, unknown].join("\n"));
    await rig.became(whole, "discarded");
  });
});

test("accounts see the files, triggers and readings of none but themselves, also under the same names", async () => {
  const first = await rig.variable("W-1");
  const second = await rig.variable("W-1", SECOND);
  const trigger = await rig.trigger("wall_", "standard");
  // From here on the triggers of the first account are in force.
  await rig.became(await rig.store("other.csv", "x"), "unclaimed");
  const one = await rig.store("wall.csv", "x", SECOND);
  const other = await rig.store("wall_1.csv", standardCsv("W-1", DATE, 2), SECOND);
  expect(await rig.became(one, "unclaimed", SECOND)).toMatchObject({
    reason: "no trigger claims it: no trigger is configured",
  });
  await rig.became(other, "unclaimed", SECOND);
  const own = await rig.trigger("wall_", "standard", {}, SECOND);
  const files = [
    await rig.store("wall_1.csv", standardCsv("W-1", DATE, 10)),
    await rig.store("wall_1.csv", standardCsv("W-1", DATE, 20), SECOND),
  ];
  expect(await rig.became(files[0] ?? 0, "stored")).toMatchObject({ triggerId: trigger });
  expect(await rig.became(files[1] ?? 0, "stored", SECOND)).toMatchObject({ triggerId: own });
  expect(Object.values(await rig.values(first))).toEqual([10]);
  expect(Object.values(await rig.values(second, SECOND))).toEqual([20]);
});

test("what was being done when the hub stopped is done after its start", async () => {
  const variableId = await rig.variable("R-1");
  await rig.trigger("again_", "standard");
  const ids = await Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      rig.store(`again_${at}.csv`, standardCsv("R-1", `2026-03-0${at + 1}T00:00:00Z`, at)),
    ),
  );
  await rig.restart();
  for (const id of ids) await rig.became(id, "stored");
  expect(Object.values(await rig.values(variableId))).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});
