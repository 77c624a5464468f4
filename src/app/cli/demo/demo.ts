/** `headgate demo` (`npm start`): hub, field servers and gateway on loopback, with the scenario of `samples/`. */

import { join } from "node:path";
import { pino } from "pino";
import { systemClock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { createLog } from "#core/log.ts";
import { parseDuration } from "#core/quantities.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type FileEvent, type Gateway, startGateway } from "#gateway/gateway.ts";
import { type CommandFrame, userName } from "../command.ts";
import { controlMigrations } from "../migrate/lazy-control.ts";
import { print, printJson, printTable, styled, summaryLine } from "../output.ts";
import { printProgress, printStep } from "../progress.ts";
import { waitUntilIdle } from "../until-idle.ts";
import { derivedOutcomes, type Outcome } from "./derived.ts";
import { HUB_LINE, sendFromDevices } from "./devices.ts";
import { type DemoGround, prepareGround, writeLinks } from "./ground.ts";
import { compareWithScenario, type Ended } from "./scenario.ts";

interface DemoOptions {
  readonly untilIdle?: boolean;
  readonly timeout: string;
  readonly keep?: boolean;
  readonly state: string;
  readonly json?: boolean;
}

export function addDemo({ command, stop, action }: CommandFrame): void {
  command("demo", ["npm start", "npm start -- --until-idle --json"])
    .option("--until-idle", "end when everything has settled; exit 0 only if every file ended as its scenario expects")
    .option("--timeout <duration>", "with --until-idle: give up after this", "2m")
    .option("--keep", "continue with the state of the last run instead of starting afresh")
    .option("--state <folder>", "folder for the demo's state; emptied at each start unless --keep", ".headgate/demo")
    .option("--json", "print the summary as one JSON object")
    .action(action((options: DemoOptions) => runDemo(options, stop)));
}

/** The demo starts afresh where its state is of another schema, with which it cannot continue. */
async function runDemo(options: DemoOptions, stop: AbortSignal): Promise<number> {
  try {
    return await runOnce(options, stop);
  } catch (thrown) {
    const isOther = thrown instanceof ConfigError && ["HG-HUB-002", "HG-LEDG-003"].includes(thrown.code);
    if (options.keep !== true || !isOther) throw thrown;
    if (options.json !== true) print(`The demo starts afresh: ${thrown.message}`);
    return runOnce({ ...options, keep: false }, stop);
  }
}

async function runOnce(options: DemoOptions, stop: AbortSignal): Promise<number> {
  const quiet = options.json === true;
  const say = quiet ? () => {} : print;
  const ground = await prepareGround(options.state, options.keep === true);
  try {
    say(`${styled("bold", "Headgate demo")}: hub, gateway and three sample drops on this machine`);
    printGround(ground, say);
    const config = loadGatewayConfig(ground.gatewayConfig);
    const log = createLog(config.log.level, pino.destination({ dest: join(ground.state, "gateway.log"), sync: true }));
    // The loggers wait for it, so that they do not delay what a reader waits for.
    const stored = Promise.withResolvers<void>();
    const onEvent = (event: FileEvent) => {
      if (event.what === "run.confirmed") stored.resolve();
      printProgress(event, say);
    };
    const migrations = controlMigrations(ground.gatewayConfig);
    const gateway = await startGateway(config, { log, onEvent, migrations });
    try {
      say(`  operations  ${gateway.operationsUrl}/health/ready`);
      printConsole(gateway, ground, say);
      say("");
      const timeoutMs = parseDuration(options.timeout) ?? 120_000;
      const timely = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]);
      const sending = stored.promise.then(() => sendToHub(ground, say, timely));
      sending.catch(() => undefined); // It is awaited below.
      const idle = await waitUntilIdle(
        gateway,
        stop,
        options.untilIdle === true ? timeoutMs : Number.POSITIVE_INFINITY,
      );
      stored.resolve();
      const ended = [...(await compareWithScenario(ground.scenario, gateway.ledger)), ...(await sending)];
      const { scenario, calculatedId } = ground;
      const derived = await derivedOutcomes(ground.sentTo, calculatedId, scenario.derived, timely);
      if (!quiet) printEnd(ended, derived, ground, options.untilIdle !== true);
      if (options.untilIdle !== true && idle === "idle") await untilStopped(stop, say);
      const summary = await gateway.summary();
      if (quiet) printJson({ ...summary, derived });
      else print(summaryLine(summary));
      return idle === "idle" && [...ended, ...derived].every((one) => one.fault === null) ? 0 : 1;
    } finally {
      await gateway.stop();
      await migrations.close();
    }
  } finally {
    await ground.close();
  }
}

function sendToHub(ground: DemoGround, say: (line: string) => void, signal: AbortSignal): Promise<readonly Ended[]> {
  const report = (path: string, words: string, detail: string) =>
    printStep({ at: systemClock.now().toString(), place: HUB_LINE, path, words }, detail, say);
  return sendFromDevices(ground.scenario.hub, ground.sentTo, report, signal);
}

/** The link works once; programs find it in `links.json`. */
function printConsole(gateway: Gateway, { state, links }: DemoGround, say: (line: string) => void): void {
  const link = gateway.consoleLink(userName());
  if (link === null) return;
  writeLinks(state, { console: link, ...links });
  say(`  console     ${link}`);
}

function printGround(ground: DemoGround, say: (line: string) => void): void {
  say(`  hub         ${ground.hubUrl}`);
  const { explorer, explorerUser, explorerPassword } = ground.links;
  say(`  explorer    ${explorer}  (sign in as ${explorerUser} with ${explorerPassword})`);
  say(`  sent to it  sftp://device@${ground.sentTo.transfer.sftp}, ftp://device@${ground.sentTo.transfer.ftp}`);
  say(`  local       ${ground.folders.local}`);
  say(`  sftp        sftp://logger@127.0.0.1:${ground.sftpPort}  (${ground.folders.sftp})`);
  say(`  ftp         ftp://meter@127.0.0.1:${ground.ftpPort}  (${ground.folders.ftp})`);
}

/** `staysUp`: the hub responds until a person ends the demo. */
function printEnd(ended: readonly Ended[], derived: readonly Outcome[], ground: DemoGround, staysUp: boolean): void {
  print("");
  print(styled("bold", "Where each file went"));
  printTable(
    ["  drop", "file", "ended", "points stored", "is now at"],
    ended.map((one) => [
      `  ${one.drop}`,
      one.path,
      one.fault === null
        ? styled(["delivered", "stored"].includes(one.found) ? "green" : "yellow", one.found)
        : styled("red", `${one.found}: ${one.fault}`),
      one.points === 0 ? "" : String(one.points),
      one.where,
    ]),
  );
  print("");
  print(styled("bold", "What the hub made of the points"));
  printTable(
    ["  kind", "name", "ended", "with"],
    derived.map(({ what, name, found, detail, fault }) => [
      `  ${what}`,
      name,
      fault === null ? styled("green", found) : styled("red", `${found}: ${fault}`),
      detail,
    ]),
  );
  const config = ground.gatewayConfig;
  print("");
  print(styled("bold", "Try it yourself"));
  print(`  npx headgate trace standard_corrected_2026-03-20.csv -c ${config}   # why it is in quarantine`);
  print(`  npx headgate runs -c ${config}`);
  if (staysUp) print(`  npx headgate console link -c ${config}   # another link to the console; each works once`);
  // A hub that ends with this command cannot be queried.
  if (staysUp) print(`  ${ground.queryCommand}   # stored points`);
  else print("  npm start   # the same with a hub that stays up, and a command that queries its stored points");
  print("");
}

async function untilStopped(stop: AbortSignal, say: (line: string) => void): Promise<void> {
  say("Everything has settled; the demo keeps watching. Put files into the drops, or end it with Ctrl-C.");
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
}
