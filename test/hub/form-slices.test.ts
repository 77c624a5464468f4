/** A form with many values is changed in slices, between which others write. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fitOf } from "#hub/forms/definition.ts";
import type { FormFit, NewForm, StoredForm } from "#hub/store/forms.ts";
import type { HubStore } from "#hub/store/store.ts";
import { StructureHeld } from "#hub/store/structure-hold.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

const SOURCES = 1_000;
/** As the store has it. */
const SLICE = 300;
const SECOND = { account: 2, as: "second" } as const;

let hub: TestHub;
let formId: number;
let variableId: number;
const sourceIds: number[] = [];
beforeAll(async () => {
  hub = await startTestHub();
  variableId = (await createChain(hub, { more: SECOND })).variableIds[0] ?? 0;
  const fields = ["Power", "Tariff"].map((name) => ({ name, type: 1, timeSliced: name === "Tariff" }));
  const form = await hub.post("/form", { name: "Contract", groups: [{ name: "Main", fields }] });
  formId = Number(form.id);
  const fieldId = Number(form.groups[0].fields[1].id);
  const { structure } = stores();
  const siteId = await structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  for (let from = 0; from < SOURCES; from += 50) {
    const made = Array.from({ length: 50 }, (_, nth) => {
      const at = from + nth;
      const clientData = { Contract: { Main: { Power: String(at) } }, Free: { Main: { POWER: "7" } } };
      const slices = [{ fieldId, all: true, values: [{ fromMs: 0, value: `t${at}` }] }];
      const judge = () => ({ clientData, slices, references: [] });
      return structure.createSource(1, { name: `Source ${at}`, siteId, sourceTypeId: 1 }, judge);
    });
    sourceIds.push(...(await Promise.all(made)).map((source) => source?.id ?? 0));
  }
}, 60_000);
afterAll(() => hub.close());

const stores = () => hub.inside().store as HubStore;
const forms = () => stores().forms;

/** `seen`: how many sources were judged and written by now. */
function watched(withData: boolean, seen: (count: number) => void): FormFit {
  const fit = fitOf(withData);
  let count = 0;
  return {
    ...fit,
    refit(...facts) {
      count += 1;
      seen(count);
      return fit.refit(...facts);
    },
  };
}

/** The form of this name; its powers have another type. */
function named(current: StoredForm, name: string, type: number): NewForm {
  const ofField = (field: StoredForm["groups"][number]["fields"][number]) =>
    field.name === "Power" ? { ...field, type } : field;
  const groups = current.groups.map((group) => ({ ...group, fields: group.fields.map(ofField) }));
  return { ...current, name, groups };
}
const toNumbers = (current: StoredForm) => named(current, "Invoice", 2);

/** Of each source, without the values that are of no form. */
async function values(): Promise<readonly unknown[]> {
  const all: readonly { id: number; clientData: { Free?: unknown } }[] = await hub.get("/sources");
  const held = new Map(all.map(({ id, clientData: { Free: _, ...data } }) => [id, data]));
  return sourceIds.map((id) => held.get(id));
}
const texts = () => sourceIds.map((_, at) => ({ Contract: { Main: { Power: String(at), Tariff: `t${at}` } } }));
const numbers = (name: string) => sourceIds.map((_, at) => ({ [name]: { Main: { Power: at, Tariff: `t${at}` } } }));
const put = (at: number, Power: string) =>
  hub.call("PATCH", `/sources/${sourceIds.at(at)}`, {
    body: { clientData: { Contract: { Main: { Power } } } },
    headers: { "content-type": "application/merge-patch+json" },
  });

describe("a form of many sources", () => {
  test("is judged as a whole before the first value changes", async () => {
    expect((await put(-1, "many")).status).toBe(200);
    const changed = forms().change(1, formId, { ...fitOf(false), change: toNumbers });
    await expect(changed).rejects.toThrow(`the source ${sourceIds.at(-1)} has a value of clientData.Contract`);
    await put(-1, String(SOURCES - 1));
    expect(await values()).toEqual(texts());
    expect((await hub.get(`/form/${formId}`)).name).toBe("Contract");
  });

  test("is judged again where a value changed meanwhile", async () => {
    let meanwhile: Promise<unknown> | undefined;
    const fit = watched(false, () => {
      meanwhile ??= put(0, "many");
    });
    const changed = forms().change(1, formId, { ...fit, change: toNumbers });
    await expect(changed).rejects.toThrow(`the source ${sourceIds[0]} has a value of clientData.Contract`);
    await meanwhile;
    await put(0, "0");
    expect(await values()).toEqual(texts());
  });

  test("stays as it is where the structure changes at each of its tries", async () => {
    const { structure } = stores();
    const createSite = () => structure.createSite(1, { name: "More", typeId: 3, timeZoneId: "UTC" });
    // The connections are there: on a busy machine, to open one may take longer than to judge.
    await Promise.all(Array.from({ length: 4 }, createSite));
    const sites: Promise<number>[] = [];
    // Asked inside each try's write, so that a site is next in the account's lane.
    const change = (current: StoredForm) => {
      sites.push(createSite());
      return toNumbers(current);
    };
    await expect(forms().change(1, formId, { ...fitOf(false), change })).rejects.toThrow(StructureHeld);
    expect(sites.length).toBeGreaterThan(1);
    await Promise.all(sites);
    expect(await values()).toEqual(texts());
  });

  test("is changed while another account creates a site and pushes: both are done within two slices", async () => {
    let written = 0;
    let others: Promise<readonly number[]> | undefined;
    const push = [{ variableId, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }];
    const fit = watched(false, (count) => {
      written = count - SOURCES;
      if (written !== 1) return;
      const site = hub.post("/sites", { name: "Other", typeId: 3, timeZoneId: "UTC" }, SECOND);
      others = Promise.all([site, hub.post("/push/api/data", push, SECOND)].map((done) => done.then(() => written)));
    });
    expect(await forms().change(1, formId, { ...fit, change: toNumbers })).toMatchObject({ name: "Invoice" });
    expect(written).toBe(SOURCES);
    for (const at of (await others) ?? [SOURCES]) expect(at).toBeLessThanOrEqual(2 * SLICE);
    expect(await values()).toEqual(numbers("Invoice"));
  });

  test("lets values of its own account wait for the last slice, and judges them by the changed form", async () => {
    let own: ReturnType<typeof put> | undefined;
    const fit = watched(false, (count) => {
      if (count === SOURCES + 1) own = put(0, "0");
    });
    const changed = forms().change(1, formId, { ...fit, change: (current) => named(current, "Contract", 2) });
    expect(await changed).toMatchObject({ name: "Contract" });
    expect((await own)?.status).toBe(200);
    expect(await values()).toEqual(numbers("Contract"));
  });

  test("loses a field with its slices", async () => {
    const change = (current: StoredForm): NewForm => ({
      ...current,
      groups: current.groups.map((group) => ({
        ...group,
        fields: group.fields.filter(({ timeSliced }) => !timeSliced),
      })),
    });
    await expect(forms().change(1, formId, { ...fitOf(false), change })).rejects.toThrow("it goes with its field");
    expect(await forms().change(1, formId, { ...fitOf(true), change })).toMatchObject({ name: "Contract" });
    expect(await values()).toEqual(sourceIds.map((_, at) => ({ Contract: { Main: { Power: at } } })));
  });

  test("is removed with its values", async () => {
    expect(await forms().remove(1, formId, fitOf(true))).toBe(true);
    expect(await values()).toEqual(sourceIds.map(() => ({})));
  });

  test("takes up the values that are there under its name", async () => {
    const groups = [{ name: "Main", fields: [{ name: "Power", type: 2 }] }];
    expect(await hub.post("/form", { name: "FREE", groups })).toMatchObject({ name: "FREE" });
    expect(await values()).toEqual(sourceIds.map(() => ({ FREE: { Main: { Power: 7 } } })));
  });
});
