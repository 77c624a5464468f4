/**
 * Takes files through every transition of the ledger at the path given, until the fault point given ends the
 * process. Before each step it says `begin` with the events that the step will append, and after it `done`,
 * so that the parent knows what was promised.
 */
import { writeSync } from "node:fs";
import { systemClock } from "#core/clock.ts";
import { armFault } from "#core/faults.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { BINDING, entry, list, outcome, record, slice } from "./fixtures.ts";

const [path = "", fault = ""] = process.argv.slice(2);
const ledger = await openSqliteLedger({ path, clock: systemClock });
armFault(fault);

async function step<T>(events: readonly string[], work: () => Promise<T>): Promise<T> {
  writeSync(1, `begin ${events.join(" ")}\n`);
  const value = await work();
  writeSync(1, "done\n");
  return value;
}

const poll = await ledger.beginPoll("field");
const names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
const sightings = await step(
  names.map(() => "arrival.settling"),
  () => poll.record(names.map((name) => entry(name))),
);
const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0] = sightings.map(({ arrival }) => arrival.id);
await step([], () => poll.complete());
await step(["arrival.unmatched"], () => ledger.advanceArrival(b, "unmatched", "no trigger"));
await step(["arrival.settling"], () => ledger.advanceArrival(b, "settling", "changed"));
await step(["arrival.duplicate"], () => ledger.advanceArrival(b, "duplicate", "came before"));
await step(["arrival.skipped"], () => ledger.advanceArrival(e, "skipped", "it lay there before"));

const open = (id: number) => step(["arrival.matched", "run.claimed"], () => ledger.openRun(id, BINDING, "lane"));
const advance = (id: string, from: Parameters<typeof ledger.advanceRun>[1], to: typeof from) =>
  step([`run.${to}`], () => ledger.advanceRun(id, from, to));

const { id } = await open(a);
await advance(id, "claimed", "fetched");
await advance(id, "fetched", "mapping");
await step(["run.mapped"], () =>
  ledger.recordMapped(id, record(["A"], [slice("1", 10), slice("2", 5), slice("3", 1)])),
);
await advance(id, "mapped", "held");
await advance(id, "held", "delivering");
const batch = (sequence: string, from: "ready" | "sending", to: "ready" | "sending" | "accepted" | "rejected") =>
  step([`batch.${to}`], () => ledger.advanceBatch(`${id}-${sequence}`, from, to, { attempted: to === "sending" }));
await batch("1", "ready", "sending");
await batch("1", "sending", "ready");
await batch("1", "ready", "sending");
await step(["batch.split"], () => ledger.splitBatch(`${id}-1`, [slice("1.1", 6), slice("1.2", 4)], "413 too large"));
for (const sequence of ["1.1", "1.2", "2", "3"]) {
  await batch(sequence, "ready", "sending");
  await batch(sequence, "sending", sequence === "3" ? "rejected" : "accepted");
}
await advance(id, "delivering", "accepted");
await step(["outcome.webhook"], () => ledger.recordOutcome(outcome(`${id}-2`, 5)));
await step(["source.archived"], () =>
  ledger.noteRun(id, {
    finished: { at: "2026-03-01T00:00:00.000Z", left: true },
    event: "source.archived",
  }),
);
await step(["source.aside"], () =>
  ledger.finishedFiles.watch(
    {
      ...{ drop: "field", path: "d", place: "d", arrivalId: d, size: 1, mtime: "1", identity: null },
      plan: { action: "delete" },
      endsAt: "2026-03-01T01:00:00.000Z",
      checkAt: "2026-03-01T00:00:10.000Z",
    },
    { what: "source.aside", detail: "" },
  ),
);
await advance(id, "accepted", "unconfirmed");
await advance(id, "unconfirmed", "confirmed");
await advance(id, "confirmed", "discarded");

const plain = await open(g);
await step(["run.fetched", "run.mapping", "run.mapped"], () =>
  ledger.advanceRuns([
    {
      id: plain.id,
      from: "claimed",
      through: [{ to: "fetched", change: { sha256: "g" } }, { to: "mapping" }, { to: "mapped" }],
      mapped: record(["G"], [slice("1", 4)]),
    },
  ]),
);
await step(["run.delivering"], () => ledger.beginDelivery(plain.id, "to main"));
await step(["batch.sending"], () => ledger.advanceBatch(`${plain.id}-1`, "ready", "sending", { attempted: true }));
await step(["batch.accepted", "run.accepted"], () =>
  ledger.acceptBatch(`${plain.id}-1`, "200", { service: "main", finishPlan: { action: "leave" } }),
);

const broken = await open(c);
await advance(broken.id, "claimed", "quarantined");
await advance(broken.id, "quarantined", "cancelled");
const empty = await open(d);
await advance(empty.id, "claimed", "fetched");
await advance(empty.id, "fetched", "mapping");
await advance(empty.id, "mapping", "empty");
const emptied = await open(h);
await advance(emptied.id, "claimed", "fetched");
await advance(emptied.id, "fetched", "mapping");
await advance(emptied.id, "mapping", "emptied");
const stale = await open(i);
await advance(stale.id, "claimed", "fetched");
await advance(stale.id, "fetched", "mapping");
await step(["run.mapped"], () => ledger.recordMapped(stale.id, record(["I"], [slice("1", 3)])));
await advance(stale.id, "mapped", "held");
await step(["run.cancelled", "run.claimed"], () =>
  ledger.replaceHeld(
    stale.id,
    { code: "HG-RUN-010", message: "the mapper was changed" },
    {
      ...{ binding: BINDING, lane: "lane" },
      replay: { of: stale.id, rejectedOnly: false, overwrite: true, by: "Headgate", continues: "claim" },
    },
  ),
);
const container = await open(f);
await advance(container.id, "claimed", "fetched");
await step(["arrival.settling", "arrival.settling", "run.opened"], () =>
  ledger.recordOpened(container.id, [entry("in/a.csv"), entry("b.csv")], "2 entries"),
);
await step(["note"], () => ledger.addEvent({ arrivalId: d, runId: null, operationId: null, what: "note", detail: "" }));
await step(
  ["b", "c", "d", "e", "f", "g", "h", "i", "f!/in/a.csv", "f!/b.csv"].map(() => "arrival.gone"),
  () => list(ledger, "field", []),
);
await step([], () => ledger.pause({ kind: "drop", name: "field", by: "ann", why: "the server moves" }));
await step([], () => ledger.forget("field", "nothing", { by: "ann", why: "" }));
await step([], () => ledger.prune("1970-01-01T00:00:00.000Z", 10));
await ledger.close();
