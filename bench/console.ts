/**
 * The console over a ledger of a million files: how long its lists take and occupy the process, what a browser shows
 * when, and what clients of the events cost.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "#core/clock.ts";
import { attentionHandlers } from "#gateway/console/attention.ts";
import { fileHandlers } from "#gateway/console/files.ts";
import { shareInbox } from "#gateway/console/inbox.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { fileEndpoints } from "#gateway/operations/api/files.ts";
import { benchConsoleBrowser } from "./console-browser.ts";
import { benchConsoleClients } from "./console-clients.ts";
import { dropNames, fillLedger } from "./console-data.ts";
import { print, quantile, row } from "./hub-print.ts";

const FILES = Number(process.env["HEADGATE_BENCH_FILES"] ?? 1_000_000);
const WAITING = Number(process.env["HEADGATE_BENCH_WAITING"] ?? 10_000);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 5);
/** Of `lists`, `browser` and `clients`. */
const PARTS = process.env["HEADGATE_BENCH_PARTS"]?.split(",") ?? ["lists", "browser", "clients"];

/** Parameters of the search, by what a person does. */
const SEARCHES: Readonly<Record<string, object>> = {
  newest: {},
  "part of a name": { q: "00712345" },
  "in no name": { q: "nowhere" },
  folder: { q: "site-77/" },
  quarantined: { state: "quarantined" },
  "no such state": { state: "discarded" },
  trigger: { trigger: "trigger-3" },
  "trigger, in no name": { trigger: "trigger-3", q: "nowhere" },
  "drop and day": { drop: "drop-3", from: "2024-06-01T00:00:00.000Z", to: "2024-06-02T00:00:00.000Z" },
  run: { q: `r${"500000".padStart(25, "0")}` },
};

export async function benchConsole(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const path = join(folder, "state/ledger.sqlite");
  mkdirSync(join(folder, "state"));
  try {
    await fillLedger(path, FILES, WAITING);
    print(`console: a ledger of ${FILES} files, ${WAITING} of them waiting; medians of ${ROUNDS}`);
    if (PARTS.includes("lists")) await benchLists(path);
    // The gateways of the clients begin with copies.
    if (PARTS.includes("clients")) await benchConsoleClients(folder, path, ROUNDS);
    if (PARTS.includes("browser")) await benchConsoleBrowser(folder, ROUNDS);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function benchLists(path: string): Promise<void> {
  const ledger = await openSqliteLedger({ path, clock: systemClock });
  try {
    const config = { drops: dropNames.map((name) => ({ name })), triggers: [] } as never;
    const spool = { filesOf: () => ({ about: null }) };
    const parts = { ledger, spool, clock: systemClock, concerns: async () => [] } as never;
    const asked = { params: {}, body: undefined, person: { name: "bench", role: "viewer" }, signal: never } as const;
    print(row("", "ms", "longest turn, CPU ms", "files"));
    const attention = async (inbox: ReturnType<typeof shareInbox>) =>
      (await attentionHandlers(config, parts, inbox).attention({ ...asked, query: {} } as never)).total;
    await measure("attention, first", () => attention(shareInbox(config, parts)));
    const inbox = shareInbox(config, parts);
    await measure("attention, again", async () => {
      await inbox.next();
      return await attention(inbox);
    });
    const { files } = fileHandlers(config, parts);
    for (const [name, given] of Object.entries(SEARCHES)) {
      const query = fileEndpoints.files.query.parse(given);
      await measure(name, async () => {
        const answer = await files({ ...asked, query } as never);
        return `${answer.files.length}${answer.next === null ? "" : " and more"}`;
      });
    }
  } finally {
    await ledger.close();
  }
}

const never = new AbortController().signal;

async function measure(name: string, work: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  let found: unknown;
  const turns = watchTurns();
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    found = await work();
    times.push(performance.now() - began);
    await setImmediate();
  }
  print(row(name, quantile(times, 0.5).toFixed(0), (await turns.end()).toFixed(0), String(found)));
}

/** The longest turn of the event loop, in milliseconds of CPU: other processes of the machine do not count. */
function watchTurns(): { end(): Promise<number> } {
  let longest = 0;
  let isEnded = false;
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1e3;
  };
  const watch = async () => {
    for (let before = cpuMs(); !isEnded; ) {
      await setImmediate();
      const now = cpuMs();
      longest = Math.max(longest, now - before);
      before = now;
    }
    return longest;
  };
  const watched = watch();
  return {
    end() {
      isEnded = true;
      return watched;
    },
  };
}
