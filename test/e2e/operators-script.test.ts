/**
 * An operator's day as one story, in one gateway and one hub: six things go wrong, and each is seen in the console, by
 * the commands, in health, log and notification, until its cause is gone. No place is named that is not on disk.
 */
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { Reloading } from "#gateway/reload.ts";
import { callsOf, createChain } from "../hub/fixture.ts";
import { openPage, signedIn } from "../operations/console/console-browser.ts";
import { drop, oneReading, trigger } from "../runs/gateway-rig.ts";
import { headgate } from "../runs/in-process.ts";
import { describeInChromium, openChromium } from "../support/chromium.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { HeadgateProcess } from "./processes.ts";
import { NOBODY, SmallDisk } from "./small-disk.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const may = await SmallDisk.isPossible();
if (!may) console.info("skipped: an operator's day: file systems cannot be mounted here");

const LARGE_BYTES = 300_000_000;
const LARGE_ROWS = 30_000;
const BATCH = 100;
const SMALL_DISK = 40_000_000;
const ENOUGH = 400_000_000;
const DROPS = ["field", "locked"];
const FILES = [
  ["field", "what-is-this.txt"],
  ["locked", "delivered.csv"],
  ["field", "replaced.csv"],
  ["field", "large.dat"],
] as const;

describe.skipIf(!may)("an operator's day", () => {
  describeInChromium("in the console too", () => {
    const folder = mkdtempSync(join(tmpdir(), "headgate-day-"));
    const config = join(folder, "gateway.yaml");
    const kept = join(folder, "kept.yaml");
    const hubConfig = join(folder, "hub.yaml");
    const clock = new JumpingClock();
    const lines: string[] = [];
    const told: { readonly kind: string; readonly text: string }[] = [];
    const receiver = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (part) => {
        body += part;
      });
      request.on("end", () => {
        told.push(...JSON.parse(body).items);
        response.end();
      });
    });
    let disk: SmallDisk;
    let hub: HeadgateProcess;
    let filler = "";
    let hubUrl = "";
    let variables: readonly number[] = [];
    let running: Reloading<Gateway>;
    let chromium: Browser;
    let page: Page;

    beforeAll(async () => {
      chmodSync(folder, 0o755);
      disk = await SmallDisk.mount(join(folder, "small"), SMALL_DISK, NOBODY);
      const password = "manager-password";
      const user = { username: "manager", password, accounts: [1], roles: ["Manager", "Datapusher"] };
      writeFileSync(
        hubConfig,
        stringify({
          listen: "127.0.0.1:0",
          calculated: { engine: "none" },
          store: { kind: "sqlite", path: "./small/hub.sqlite" },
          accounts: [{ id: 1, name: "A" }],
          clients: [{ id: "gateway", secret: "gateway-secret" }],
          users: [user],
        }),
      );
      hub = new HeadgateProcess(["hub", "-c", hubConfig], { through: disk.through });
      hubUrl = (await hub.said("stderr", /"url":"([^"]+)"/))[1] ?? "";
      const chain = { variables: [{ name: "a" }, { name: "b" }, { name: "c" }] };
      variables = (
        await createChain(
          callsOf(() => hubUrl),
          chain,
        )
      ).variableIds;
      await once(receiver.listen(0, "127.0.0.1"), "listening");
      const receivers = [
        { name: "programs", kind: "webhook", url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` },
      ];
      for (const name of DROPS) mkdirSync(join(folder, name));
      writeFileSync(
        config,
        stringify({
          services: [
            {
              ...{ name: "hub", base: hubUrl, push: `${hubUrl}/push`, token: `${hubUrl}/connect/token` },
              credentials: { clientId: "gateway", clientSecret: "gateway-secret", username: "manager", password },
            },
          ],
          drops: DROPS.map((name) => drop(name, { finish: { delivered: { archive: "archive" }, guard: "0s" } })),
          triggers: [
            trigger("standard"),
            trigger("with-remarks", {
              mapper: "delimited",
              fileNamePatternMatches: [{ filterType: "EndsWith", value: ".dat" }],
              metadata: { date: { column: "date" }, value: "value", target: { variableId: String(variables[2]) } },
            }),
          ],
          push: {
            batch: { points: BATCH },
            confirm: { by: "read-back", pollEvery: "50ms", within: "100d" },
            retry: { initial: "50ms", max: "200ms", quickAttempts: 1 },
          },
          operations: { listen: "127.0.0.1:0" },
          notifications: { receivers, every: "0s", group: "0s" },
        }),
      );
      copyFileSync(config, kept);
      const log = createLog("info", { write: (line) => void lines.push(line) });
      running = await Reloading.start({
        load: (files) => loadGatewayConfig(config, files),
        start: (loaded, configuration) => startGateway(loaded, { log, clock, configuration }),
        ...{ log, clock },
      });
      chromium = await openChromium();
      ({ page } = await signedIn(chromium, running.gateway));
    });

    afterAll(async () => {
      await chromium?.close();
      await running?.stop();
      await hub?.end("SIGTERM");
      await disk?.close();
      receiver.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const ask = async (path: string) => {
      const { operationsUrl, operationsToken } = running.gateway;
      return (await fetch(operationsUrl + path, { headers: { authorization: `Bearer ${operationsToken}` } })).text();
    };
    const attention = async () =>
      JSON.parse(await ask("/operations/attention")) as {
        total: number;
        groups: { kind: string; title: string; examples: { reason: string }[] }[];
      };
    const kinds = async () => (await attention()).groups.map(({ kind }) => kind);
    const command = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await headgate(...args, "-c", kept);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    const trace = (path: string) => running.gateway.ledger.trace(path);
    const statesOf = async (path: string) =>
      (await trace(path)).flatMap(({ runs }) => runs.map(({ run }) => run.state)).join();
    const put = (path: string, content: string) => writeFileSync(join(folder, path), content);

    function putLarge(lastValue: string): void {
      const path = join(folder, "field", "large.tmp");
      const file = openSync(path, "w");
      const remark = "x".repeat(LARGE_BYTES / LARGE_ROWS);
      writeSync(file, "date,value,remark\n");
      for (let at = 0; at < LARGE_ROWS; at += 1) {
        const date = new Date(Date.UTC(2026, 0, 1) + at * 900_000).toISOString();
        writeSync(file, `${date},${at < LARGE_ROWS - 1 ? at : lastValue},${remark}\n`);
      }
      closeSync(file);
      renameSync(path, join(folder, "field", "large.dat"));
    }

    /** In all six places. `words` are those of the cause, `line` is what the log says of it. */
    async function isSeen(kind: string, words: string, line = words): Promise<void> {
      await until(`${kind} in the console`, async () => (await kinds()).includes(kind));
      const { groups, total } = await attention();
      expect(JSON.stringify(groups.find((group) => group.kind === kind))).toContain(words);
      expect(JSON.parse(await ask("/operations/overview")).attention).toBe(total);
      await openPage(page, `${running.gateway.consoleUrl}/`);
      await page.getByText(words).first().waitFor();
      const listed = JSON.parse(await command("quarantine", "--json")) as { state: string; reason: string }[];
      expect(JSON.stringify(listed.filter(({ state }) => state === kind))).toContain(words);
      expect(await ask("/health/ready")).toContain(words);
      expect(await command("health", "gateway")).toContain(words);
      expect(lines.join("")).toContain(line);
      await until(`${kind} to be notified`, () => {
        clock.jump(15_000);
        return told.some((item) => item.kind === kind && JSON.stringify(item).includes(words));
      });
      clock.setRight();
    }

    const isOver = (kind: string) =>
      until(`${kind} to be over`, async () => {
        clock.jump(15_000);
        clock.setRight();
        return !(await kinds()).includes(kind);
      });

    test("a file that no trigger claims", async () => {
      put("field/what-is-this.txt", "a note");
      await isSeen("unmatched", "what-is-this.txt");
      expect(await command("trace", "what-is-this.txt")).toContain("unmatched: ");
    });

    test("an archive that cannot be made", async () => {
      put("locked/archive", "a file of this name");
      put("locked/delivered.csv", oneReading(variables[0] ?? 0, 1));
      await isSeen("finish", "delivered.csv at locked cannot be archived", "delivered.csv in drop locked could not");
      expect(await statesOf("delivered.csv")).toBe("accepted");
    });

    test("the full disk of the hub", async () => {
      filler = await disk.fill();
      put("field/replaced.csv", oneReading(variables[1] ?? 0, 1, "2026-03-01T00:00:00Z"));
      await isSeen("service", "the hub has no space to store this");
      writeFileSync(hubConfig, readFileSync(hubConfig, "utf8").replace("127.0.0.1:0", new URL(hubUrl).host));
      const { code, stdout } = await headgate("health", "hub", "-c", hubConfig);
      expect([code, stdout]).toEqual([1, expect.stringContaining("it answers 503: the disk of the hub is full")]);
      expect(await command("runs")).toMatch(/replaced\.csv +delivering/);
    });

    test("a file that is overwritten just after it was claimed", async () => {
      put("field/replaced.csv", oneReading(variables[1] ?? 0, 2, "2026-03-02T00:00:00Z"));
      rmSync(filler);
      await until("both contents to be delivered", async () => {
        clock.jump(1_000);
        clock.setRight();
        return (await statesOf("replaced.csv")) === "confirmed,confirmed";
      });
      await isOver("service");
      await until("the newer content to be archived", async () =>
        (await trace("replaced.csv")).flatMap(({ events }) => events).some(({ what }) => what === "source.archived"),
      );
      const shown = await command("trace", "replaced.csv", "--no-service");
      expect(shown).toContain("there is other content at the drop now; it was left, and is an arrival of its own");
      expect(lines.join("")).toContain("replaced.csv at field was replaced by other content before it was finished");
      const [, first] = await trace("replaced.csv");
      await openPage(page, `${running.gateway.consoleUrl}/files/${first?.arrival.id}`);
      await page.getByText("replaced at its drop by other content, before it was finished").first().waitFor();
      await isSeen("drop", "(replaced.csv): what was fetched is delivered", "was replaced by other content");
    });

    test("a configuration that is refused", async () => {
      writeFileSync(config, `${readFileSync(kept, "utf8")}\nnonsense: true\n`);
      running.recheck();
      await isSeen("configuration", "unknown key nonsense");
    });

    test("a file of 300 MB, at first with a fault in its last row", async () => {
      await disk.resize(ENOUGH);
      putLarge("?");
      await isSeen("quarantined", "is not a number", "large.dat");
      putLarge(`${LARGE_ROWS - 1}`);
      await until("it is delivered", async () => (await statesOf("large.dat")) === "confirmed,quarantined");
      const [found] = await trace("large.dat");
      expect(found?.runs[0]?.batches).toHaveLength(LARGE_ROWS / BATCH);
      const shown = await command("trace", "large.dat", "--no-service");
      expect(shown.split("\n").length).toBeLessThan(80);
      expect(shown).toContain(`${LARGE_ROWS} accepted, ${LARGE_ROWS} stored`);
      await openPage(page, `${running.gateway.consoleUrl}/files/${found?.arrival.id}`);
      await page.getByText("more batches with").first().waitFor();
      expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(5_000);
      expect(await command("runs")).toMatch(new RegExp(`large\\.dat +confirmed +${LARGE_ROWS}`));
      // The corrected one needs nobody.
      expect((await kinds()).toSorted()).toEqual(["configuration", "drop", "finish", "unmatched", "unmatched"]);
    });

    test("no place is named that does not exist, and each matter is over when its cause is", async () => {
      rmSync(join(folder, "locked", "archive"));
      rmSync(join(folder, "field", "what-is-this.txt"));
      copyFileSync(kept, config);
      running.recheck();
      for (const kind of ["finish", "unmatched", "configuration"]) await isOver(kind);
      clock.jump(86_400_000);
      expect(await kinds()).toEqual([]);
      clock.setRight();
      await until("it is confirmed too", async () => (await statesOf("delivered.csv")) === "confirmed");
      expect(await command("quarantine")).toContain("nothing");
      const places: string[] = [];
      for (const [name, path] of FILES)
        for (const { arrival } of await trace(path)) {
          const { currentPlace } = JSON.parse(await ask(`/operations/files/${arrival.id}`)) as { currentPlace: string };
          const shown = await command("trace", path, "--no-service");
          if (!currentPlace.startsWith("archive/")) places.push(currentPlace);
          else expect(existsSync(join(folder, name, currentPlace)), currentPlace).toBe(true);
          expect(shown).toMatch(new RegExp(`file now +(archived as )?${currentPlace}$`, "m"));
        }
      expect(places).toEqual([
        "no longer at its drop",
        "replaced at its drop by other content, before it was finished",
        "no longer at its drop",
      ]);
      // What lies there is named by its file.
      expect(DROPS.flatMap((name) => readdirSync(join(folder, name, "archive")))).toHaveLength(FILES.length - 1);
      expect(DROPS.flatMap((name) => readdirSync(join(folder, name)))).toEqual(["archive", "archive"]);
    });
  });
});
