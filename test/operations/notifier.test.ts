/**
 * Who is told of what, when, and how often: grouped, limited, kept over restarts, and never held up by a
 * receiver that is dead.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import type { Concern } from "#gateway/operations/attention.ts";
import { NotificationState } from "#gateway/operations/notification-state.ts";
import { bodyOf, type Notification, textOf } from "#gateway/operations/notification-text.ts";
import { Notifier } from "#gateway/operations/notifier.ts";
import { type AttentionKind, notificationOptions } from "#gateway/operations/options.ts";
import type { Receiver } from "#gateway/operations/receivers.ts";

const MINUTE = 60_000;

let folder: string;
let nowMs: number;
let concerns: Concern[];
let unknown: Set<string>;
let lines: { level: string; msg: string; receiver?: string }[];
const clock: Clock = { ...systemClock, now: () => Temporal.Instant.fromEpochMilliseconds(nowMs) };
const log = createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  nowMs = Date.parse("2026-03-01T00:00:00Z");
  concerns = [];
  unknown = new Set();
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

interface FakeReceiver extends Receiver {
  readonly got: Notification[];
  fault: string | null;
}

/** In the place of a real one (`receivers.test.ts`), so that time can be told. */
function receiver(name: string, about: readonly AttentionKind[] = ["quarantined", "drop"]): FakeReceiver {
  const got: Notification[] = [];
  const own: FakeReceiver = {
    ...{ name, place: "here", about: new Set(about), got, fault: null },
    async send(notification) {
      if (own.fault !== null) throw new Error(own.fault);
      got.push(notification);
      return { words: "taken", isPartial: false };
    },
  };
  return own;
}

const file = (id: string, kind: AttentionKind = "quarantined"): Concern => ({
  key: `run ${id} ${kind}`,
  kind,
  text: `${id}.csv at field is ${kind}: no number`,
  facts: { run: id, drop: "field", file: `${id}.csv` },
});
const dropAway: Concern = {
  key: "drop field",
  kind: "drop",
  text: "the drop field cannot be polled",
  facts: {},
};

async function open(...receivers: readonly Receiver[]): Promise<Notifier> {
  const state = await NotificationState.read(join(folder, "notifications.json"), log);
  return new Notifier({
    options: notificationOptions.parse({ attempts: 3 }),
    ...{ receivers, state, gateway: "node-1", clock, log },
    find: async () => ({ concerns, unknown }),
  });
}

async function lookAt(notifier: Notifier, laterMs = 0): Promise<void> {
  nowMs += laterMs;
  await notifier.look();
  await notifier.settled();
}

test("events within a group are one message, and later ones wait for the next", async () => {
  const mail = receiver("mail");
  const notifier = await open(mail);
  concerns = [file("a")];
  await lookAt(notifier);
  concerns = [file("a"), file("b")];
  await lookAt(notifier, 30_000);
  expect(mail.got).toEqual([]);
  await lookAt(notifier, 30_000);
  expect(mail.got.map((one) => one.concerns.map(({ key }) => key))).toEqual([
    ["run a quarantined", "run b quarantined"],
  ]);
  concerns = [file("a"), file("b"), file("c")];
  await lookAt(notifier, 5 * MINUTE);
  await lookAt(notifier, 5 * MINUTE);
  expect(mail.got).toHaveLength(1);
  await lookAt(notifier, 6 * MINUTE);
  expect(mail.got[1]?.concerns.map(({ key }) => key)).toEqual(["run c quarantined"]);
});

test("a restart repeats no notification, and loses none that was due", async () => {
  const mail = receiver("mail");
  const first = await open(mail);
  concerns = [file("a")];
  await lookAt(first);
  await lookAt(first, MINUTE);
  concerns = [file("a"), file("b")];
  await lookAt(first, MINUTE);
  expect(mail.got).toHaveLength(1);

  const second = await open(mail);
  await lookAt(second, 20 * MINUTE);
  await lookAt(second, 20 * MINUTE);
  expect(mail.got.slice(1).map((one) => one.concerns.map(({ key }) => key))).toEqual([["run b quarantined"]]);
});

test("a shutdown sends due notifications without waiting for more", async () => {
  const mail = receiver("mail");
  const notifier = await open(mail);
  notifier.start();
  concerns = [file("a")];
  await notifier.stop();
  expect(mail.got).toHaveLength(1);
});

test("a dead receiver is logged once, retried with growing pauses, given up, and delays no other", async () => {
  const [dead, living] = [receiver("dead"), receiver("living")];
  dead.fault = "connection refused";
  const notifier = await open(dead, living);
  concerns = [file("a")];
  await lookAt(notifier);
  await lookAt(notifier, MINUTE);
  expect(living.got).toHaveLength(1);
  expect(notifier.failing().get("dead")).toBe("connection refused");
  await lookAt(notifier, 30_000);
  await lookAt(notifier, 30_000);
  await lookAt(notifier, 2 * MINUTE);
  const about = (level: string) => lines.filter((line) => line.level === level && line.receiver === "dead");
  expect(about("warn")).toHaveLength(1);
  expect(about("error").map(({ msg }) => msg)).toEqual(["a notification is given up: connection refused"]);

  dead.fault = null;
  await lookAt(notifier, 2 * 60 * MINUTE);
  expect(dead.got).toEqual([]);
  concerns = [file("a"), file("b")];
  await lookAt(notifier, MINUTE);
  await lookAt(notifier, MINUTE);
  expect(dead.got.map((one) => one.concerns.map(({ key }) => key))).toEqual([["run b quarantined"]]);
  expect(notifier.failing().size).toBe(0);
});

test("a receiver that never responds delays neither a check nor the others", async () => {
  const hanging: Receiver = { ...receiver("hanging"), send: () => new Promise(() => undefined) };
  const living = receiver("living");
  const notifier = await open(hanging, living);
  concerns = [file("a")];
  await notifier.look();
  nowMs += MINUTE;
  await notifier.look();
  nowMs += MINUTE;
  await notifier.look();
  expect(living.got).toHaveLength(1);
});

test("a drop is notified after a long failure, and after its return; an unknown state changes nothing", async () => {
  const mail = receiver("mail");
  const notifier = await open(mail);
  concerns = [dropAway];
  await lookAt(notifier);
  await lookAt(notifier, 3 * MINUTE);
  concerns = [];
  await lookAt(notifier);
  expect(mail.got).toEqual([]);

  concerns = [dropAway];
  await lookAt(notifier);
  await lookAt(notifier, 6 * MINUTE);
  expect(mail.got).toHaveLength(1);
  const again = await open(mail);
  concerns = [];
  unknown = new Set(["drop field"]);
  await lookAt(again, 20 * MINUTE);
  expect(mail.got).toHaveLength(1);
  unknown = new Set();
  await lookAt(again, MINUTE);
  expect(mail.got[1]).toMatchObject({ concerns: [], resolved: [{ key: "drop field" }] });
});

test("a receiver gets only the kinds that it is configured for", async () => {
  const [late, all] = [receiver("late", ["late"]), receiver("all", ["late", "quarantined"])];
  const notifier = await open(late, all);
  concerns = [file("a"), { key: "late daily", kind: "late", text: "none came", facts: {} }];
  await lookAt(notifier);
  await lookAt(notifier, MINUTE);
  expect(late.got.map((one) => one.concerns.map(({ kind }) => kind))).toEqual([["late"]]);
  expect(all.got[0]?.concerns).toHaveLength(2);
});

test("a state that cannot be read is reset, and one that cannot be written is logged once", async () => {
  const path = join(folder, "notifications.json");
  writeFileSync(path, "{");
  const mail = receiver("mail");
  const notifier = await open(mail);
  expect(lines.filter(({ level }) => level === "warn")).toHaveLength(1);
  concerns = [file("a")];
  await lookAt(notifier);
  await lookAt(notifier, MINUTE);
  expect(mail.got).toHaveLength(1);
  expect(JSON.parse(readFileSync(path, "utf8")).known).toMatchObject([{ key: "run a quarantined", told: ["mail"] }]);
});

test("names of files are text: no line breaks, no mentions, no links; many are counted", () => {
  const nasty = { ...file("x"), text: "a\r\nBcc: <!channel> [b](http://c).csv is quarantined" };
  const at = "2026-03-01T00:00:00.000Z";
  const many = Array.from({ length: 40 }, (_, index) => ({ ...file(`f${index}`), since: at }));
  const notification: Notification = {
    ...{ kind: "attention", id: "1", at, gateway: "node-1", resolved: [] },
    concerns: [{ ...nasty, since: at }, ...many],
  };
  const lines = textOf(notification).split("\n");
  expect(lines[0]).toBe("Headgate on node-1: 41 files quarantined");
  expect(lines[1]).toBe("- a Bcc: <!channel> [b](http://c).csv is quarantined [headgate trace x]");
  expect(lines.at(-1)).toMatch(/^- and 16 more/);
  expect(JSON.parse(bodyOf(notification, "slack")).text).toContain("&lt;!channel&gt;");
  expect(JSON.stringify(JSON.parse(bodyOf(notification, "teams")))).toContain("\\\\[b\\\\]\\\\(http");
  expect(JSON.parse(bodyOf(notification, "json"))).toMatchObject({
    kind: "attention",
    total: 41,
    counts: { quarantined: 41 },
    items: expect.arrayContaining([expect.objectContaining({ run: "x", drop: "field" })]),
  });
});
