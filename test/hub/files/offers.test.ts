/** What becomes of a file counts for the offer that it belongs to. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

async function stored(): Promise<number> {
  const form = new FormData();
  form.append("file", new Blob(["date;value\n"]));
  const authorization = `Bearer ${await hub.token()}`;
  const response = await fetch(`${hub.url()}/storage?Filename=a.csv`, {
    method: "POST",
    headers: { authorization },
    body: form,
  });
  expect(response.status).toBe(200);
  return Number(await response.json());
}

test("a file that is offered again is not changed by what became of the earlier offer", async () => {
  const { files } = hub.inside().store;
  const id = await stored();
  const offered = async () => (await files.waiting(1, 10)).find((file) => file.id === id)?.offers;
  expect(await offered()).toBe(1);
  const unclaimed = { state: "unclaimed", reason: "no trigger", atMs: 5 } as const;
  expect(await files.advance(1, [{ id, ...unclaimed, offers: 2 }])).toEqual([false]);
  expect(await files.advance(1, [{ id, ...unclaimed, offers: 1 }])).toEqual([true]);
  expect(await offered()).toBeUndefined();
  await hub.ok("POST", `/storage/${id}/process`);
  expect(await offered()).toBe(2);
  expect(await files.advance(1, [{ id, ...unclaimed, offers: 1 }])).toEqual([false]);
  expect(await hub.get(`/storage/${id}`)).toMatchObject({ state: "received", reason: null });
});

test("the date of a state is that of the state, and not of its reason", async () => {
  const { files } = hub.inside().store;
  const id = await stored();
  const date = async () => (await hub.get(`/storage/${id}`)).stateDate;
  await files.advance(1, [{ id, state: "processing", reason: null, atMs: 60_000 }]);
  expect(await date()).toBe("1970-01-01T00:01:00.000Z");
  await files.advance(1, [{ id, state: "processing", reason: "waits", atMs: 120_000 }]);
  expect(await date()).toBe("1970-01-01T00:01:00.000Z");
  await files.advance(1, [{ id, state: "quarantined", reason: "is broken", atMs: 180_000 }]);
  expect(await date()).toBe("1970-01-01T00:03:00.000Z");
});

test("who waits for files of an account is called when one is offered again", async () => {
  const { files, store } = hub.inside();
  const id = await stored();
  await store.files.advance(1, [{ id, state: "unclaimed", reason: null, atMs: 5 }]);
  const called: number[] = [];
  const ends = [1, 2].map((account) => files?.onWaiting(account, () => called.push(account)));
  await hub.ok("POST", `/storage/${id}/process`);
  expect(called).toEqual([1]);
  for (const end of ends) end?.();
  files?.wake();
  expect(called).toEqual([1]);
});
