/** `headgate demo` (`npm start`): hub, field servers and gateway on loopback, with the scenario of `samples/`. */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { parseDocument } from "yaml";
import { z } from "zod";
import { systemClock } from "#core/clock.ts";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { createLog } from "#core/log.ts";
import { narrowModes, PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { parseDuration } from "#core/quantities.ts";
import { type ProcessLock, takeProcessLock } from "#core/sql/process-lock.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type FileEvent, type Gateway, startGateway } from "#gateway/gateway.ts";
import { loadHubOptions } from "#hub/config.ts";
import { freshHostKey } from "#hub/transfer/host-keys.ts";
import { ServiceClient } from "#wire/client/index.ts";
import { API_VERSION } from "#wire/problem.ts";
import { SOURCE_TYPES } from "#wire/referentials.ts";
import { startPlatform } from "../../platform.ts";
import { type CommandFrame, userName } from "../command.ts";
import { controlMigrations } from "../migrate/lazy-control.ts";
import { print, printJson, printTable, styled, summaryLine } from "../output.ts";
import { printProgress, printStep } from "../progress.ts";
import { waitUntilIdle } from "../until-idle.ts";
import { call, HUB_LINE, type SentTo, sendFromDevices } from "./devices.ts";
import { type Field, startField } from "./field.ts";
import {
  compareWithScenario,
  type Derived,
  type Ended,
  readScenario,
  readStructure,
  type Scenario,
  type Structure,
} from "./scenario.ts";

interface DemoOptions {
  readonly untilIdle?: boolean;
  readonly timeout: string;
  readonly keep?: boolean;
  readonly state: string;
  readonly json?: boolean;
}

const named = z.array(z.object({ id: z.int(), name: z.string(), mappingConfig: z.string().nullish() }));
const counted = z.array(z.object({ countValue: z.int() }));
const alarms = z.array(z.object({ state: z.string(), since: z.string().nullable(), value: z.number().nullable() }));
const POLL_MS = 200;
/** Sums have a rounding error in the last of their 17. */
const DIGITS = 6;

/** Source type of sources that pushes feed. */
const PUSHED_DATA = SOURCE_TYPES.find(({ name }) => name === "Pushed Data")?.id;
const TIMEOUTS = { connect: 5_000, headers: 10_000, body: 10_000, total: 30_000 };

/** Marks a folder as the demo's own, so that no other folder is ever emptied. */
const MARKER = "this folder belongs to the headgate demo";
const PACKAGE = resolve(import.meta.dirname, "../../../..");

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

// The environment of the demo: its state folder, the hub with its structure, the field servers, and the gateway's
// configuration.

interface DemoGround {
  readonly state: string;
  readonly hubUrl: string;
  readonly links: DemoLinks;
  /** Where loggers send their files. */
  readonly sentTo: SentTo;
  readonly sftpPort: number;
  readonly ftpPort: number;
  readonly folders: Readonly<Record<"local" | "sftp" | "ftp", string>>;
  /** Path of the gateway's configuration, relative where that is shorter. */
  readonly gatewayConfig: string;
  readonly scenario: Scenario;
  /** Id of the variable that the hub calculates. */
  readonly calculatedId: number;
  /** A command that shows stored points. */
  readonly queryCommand: string;
  close(): Promise<void>;
}

/** Pages of the demo, as `links.json` of its folder names them for programs. */
interface DemoLinks {
  /** Signs in once; absent until the gateway runs. */
  readonly console?: string;
  readonly explorer: string;
  readonly explorerUser: string;
  readonly explorerPassword: string;
}

export async function prepareGround(stateFolder: string, keep: boolean): Promise<DemoGround> {
  const state = resolve(stateFolder);
  const samples = join(PACKAGE, "samples");
  if (!existsSync(samples)) {
    throw new ConfigError("HG-CLI-004", { operation: "start demo", subject: samples });
  }
  const lock = lockState(state);
  try {
    const ground = await prepareLockedGround(state, samples, keep);
    const close = () => ground.close().finally(() => lock.release());
    return { ...ground, close };
  } catch (thrown) {
    lock.release();
    throw thrown;
  }
}

/**
 * The lock is beside the folder, since the folder itself is emptied: a second demo would delete the files of the
 * first.
 */
function lockState(state: string): ProcessLock {
  const facts = { operation: "start demo", subject: state };
  let lock: ProcessLock | null;
  try {
    mkdirSync(dirname(state), { recursive: true });
    lock = takeProcessLock(`${state}.lock`);
  } catch (cause) {
    const message = `${state}.lock cannot be locked: ${wordsOf(cause)}`;
    throw new ConfigError("HG-CLI-008", { ...facts, message, cause });
  }
  if (lock !== null) return lock;
  throw new ConfigError("HG-CLI-007", { ...facts, message: `another demo is running in ${state}` });
}

async function prepareLockedGround(state: string, samples: string, keep: boolean): Promise<DemoGround> {
  const fresh = prepareState(state, keep);
  const scenario = readScenario(samples);
  const folders = {
    local: join(state, "drops/local"),
    sftp: join(state, "drops/sftp"),
    ftp: join(state, "drops/ftp"),
  };
  if (fresh)
    for (const kind of ["local", "sftp", "ftp"] as const)
      cpSync(join(samples, "drops", kind), folders[kind], { recursive: true });
  // The samples bring their own modes.
  narrowModes(Object.values(folders));

  const closers: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const closer of closers.reverse()) await closer();
  };
  try {
    const hostKey = hostKeyIn(state);
    const hub = await startDemoHub(state, fresh);
    closers.push(() => hub.close());
    const users = [
      { username: "logger", password: "demo-password", folder: folders.sftp },
      { username: "meter", password: "demo-password", folder: folders.ftp },
    ];
    const field = await startField(users, hostKey, createLog("warn"));
    closers.push(() => field.close());
    const { token, example } = await buildStructure(hub.url, readStructure(samples));
    const calculatedId = await buildDerived({ hubUrl: hub.url, token }, scenario.derived);
    const links = explorerLinks(hub.url);
    writeLinks(state, links);
    const tokenFile = join(state, "token");
    writeFileSync(tokenFile, token, { mode: PRIVATE_FILE });
    const gatewayConfig = writeGatewayConfig(state, hub.url, field);
    const { sftp = null, ftp = null } = hub.transfer ?? {};
    return {
      state,
      hubUrl: hub.url,
      links,
      sentTo: { hubUrl: hub.url, token, transfer: { sftp, ftp }, hostKey, folder: join(samples, "sent") },
      sftpPort: field.sftpPort,
      ftpPort: field.ftpPort,
      folders: { local: shortest(folders.local), sftp: shortest(folders.sftp), ftp: shortest(folders.ftp) },
      gatewayConfig: shortest(gatewayConfig),
      scenario,
      calculatedId,
      queryCommand:
        `curl -sH "Authorization: Bearer $(cat ${shortest(tokenFile)})" ` +
        `"${hub.url}/data?VariableId=${example}&DisplayLevel=ValueVariableDate` +
        `&Paging.PageNumber=0&Paging.ItemsPerPage=4"`,
      close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** True when the state is new. */
function prepareState(state: string, keep: boolean): boolean {
  const marker = join(state, ".headgate-demo");
  if (existsSync(state) && !existsSync(marker)) {
    throw new ConfigError("HG-CLI-005", { operation: "start demo", subject: state });
  }
  if (keep && existsSync(marker)) return false;
  rmSync(state, { recursive: true, force: true });
  mkdirSync(state, { recursive: true, mode: PRIVATE_FOLDER });
  writeFileSync(marker, `${MARKER}\n`);
  return true;
}

/** Listens on a free port, and on the same one again with `--keep` where it is still free. */
async function startDemoHub(state: string, fresh: boolean) {
  const path = join(state, "hub.yaml");
  const any = "127.0.0.1:0";
  const places = (hub: string, sftp: string, ftp: string): Edits => [
    [["listen"], hub],
    [["transfer", "sftp", "listen"], sftp],
    [["transfer", "ftp", "listen"], ftp],
  ];
  if (fresh) writeFileSync(path, editYaml("demo.hub.yaml", places(any, any, any)));
  const options = loadHubOptions(path);
  const hub = await startPlatform(options, { log: createLog(options.log.level) });
  const { sftp, ftp } = hub.transfer ?? {};
  writeFileSync(path, editYaml("demo.hub.yaml", places(new URL(hub.url).host, sftp ?? any, ftp ?? any)));
  return hub;
}

/** The user is one of `demo.hub.yaml`; the password is a word that the output may show (`core/secrets.ts`). */
function explorerLinks(hubUrl: string): DemoLinks {
  return { explorer: `${hubUrl}/`, explorerUser: "demo", explorerPassword: "headgate-demo" };
}

function writeLinks(state: string, links: DemoLinks): void {
  writeFileSync(join(state, "links.json"), `${JSON.stringify(links, null, 2)}\n`, { mode: PRIVATE_FILE });
}

/** One key for the servers of the field and of the hub: the RSA key that the hub would make takes a second. */
function hostKeyIn(state: string): string {
  const path = join(state, "host_key");
  if (!existsSync(path)) writeFileSync(path, freshHostKey("ed25519"), { mode: PRIVATE_FILE });
  return readFileSync(path, "utf8");
}

function writeGatewayConfig(state: string, hubUrl: string, field: Field): string {
  const path = join(state, "gateway.yaml");
  const text = editYaml("demo.gateway.yaml", [
    [["services", 0, "base"], hubUrl],
    [["services", 0, "push"], `${hubUrl}/push`],
    [["services", 0, "token"], `${hubUrl}/connect/token`],
    [["drops", 1, "port"], field.sftpPort],
    [["drops", 1, "hostKeys"], [field.hostKeyFingerprint]],
    [["drops", 2, "port"], field.ftpPort],
    [["operations", "listen"], "127.0.0.1:0"],
  ]);
  writeFileSync(path, text);
  return path;
}

type Edits = readonly (readonly [readonly (string | number)[], unknown])[];

/** The YAML of `config/` with some values replaced, comments kept. */
function editYaml(name: string, edits: Edits): string {
  const document = parseDocument(readFileSync(join(PACKAGE, "config", name), "utf8"));
  for (const [path, value] of edits) document.setIn(path, value);
  return document.toString({ lineWidth: 0 });
}

function shortest(path: string): string {
  const short = relative(process.cwd(), path);
  return short.length < path.length && !short.startsWith("..") ? short : path;
}

// Creates the demo's sites, sources and variables in the hub, as a client of its management interface; existing ones
// stay.

/** `example`: the id of the first variable. `token`: of the user for whom it was built. */
async function buildStructure(
  hubUrl: string,
  structure: Structure,
): Promise<{ readonly example: number; readonly token: string }> {
  const client = new ServiceClient(
    {
      name: "hub",
      base: hubUrl,
      push: `${hubUrl}/push`,
      token: `${hubUrl}/connect/token`,
      account: "1",
      apiVersion: API_VERSION,
      auth: "bearer",
      credentials: {
        clientId: "demo-client",
        clientSecret: "demo-client-secret",
        username: "gateway",
        password: "demo-password",
      },
      scopes: ["datahub-api", "push-data"],
    },
    { connections: 1, timeouts: TIMEOUTS, clock: systemClock },
  );
  const signal = AbortSignal.timeout(TIMEOUTS.total);
  try {
    const { value: token } = await client.token(signal);
    const existing = await client.getSites({}, signal);
    if (existing.items.length === 0) for (const site of structure.sites) await buildSite(client, site, signal);
    const first = structure.sites[0]?.sources[0]?.serialNumber ?? "";
    const source = (await client.getSources({ SerialNumber: [first] }, signal)).items[0];
    const variables = await client.getVariables({ SourceId: [source?.id ?? 0] }, signal);
    return { example: variables.items[0]?.id ?? 1, token };
  } finally {
    await client.close();
  }
}

async function buildSite(client: ServiceClient, site: Structure["sites"][number], signal: AbortSignal): Promise<void> {
  const { sources, ...siteBody } = site;
  const siteId = await client.postSite(siteBody, signal);
  for (const { variables, ...fields } of sources) {
    const body = { ...fields, siteId, sourceTypeId: PUSHED_DATA, timeZoneId: site.timeZoneId };
    const source = await client.postSource(withoutUndefined(body), signal);
    for (const variable of variables)
      await client.postVariable(withoutUndefined({ ...variable, sourceId: source.id }), signal);
  }
}

type Defined<Fields> = { [Key in keyof Fields]: Exclude<Fields[Key], undefined> };

function withoutUndefined<Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>;
}

// The part of the demo in which the hub itself adds to the points: a calculated variable, and an alarm on it.

type Hub = Pick<SentTo, "hubUrl" | "token">;

/** A line of the summary. */
interface Outcome {
  readonly what: "calculated" | "alarm";
  readonly name: string;
  readonly found: string;
  readonly detail: string;
  readonly fault: string | null;
}

/** Adds variable and alarm, where they are not there yet. Returns the id of the variable. */
async function buildDerived(hub: Hub, { calculated, alarm }: Derived): Promise<number> {
  const { source, variable, formula, mappingConfig, inputs } = calculated;
  const sourceId = await sourceOf(hub, source);
  const known = (await variablesOf(hub, sourceId)).find(({ name }) => name === variable.name);
  if (known !== undefined) return known.id;
  const variables: object[] = [];
  for (const [alias, serialNumber] of Object.entries(inputs)) {
    const own = await variablesOf(hub, await sourceOf(hub, serialNumber));
    const variableId = own.find((one) => one.mappingConfig === mappingConfig)?.id;
    variables.push({ alias, variableId });
  }
  const body = { ...variable, sourceId, calculated: { calculatedVariableFormulas: [{ formula, variables }] } };
  const id = z.int().parse(await (await call(hub, "/variables", body)).json());
  const { ends: _, ...template } = alarm;
  await call(hub, "/alarms/template", { ...template, selection: { variableIds: [id] } });
  return id;
}

async function sourceOf(hub: Hub, serialNumber: string): Promise<number> {
  const [found] = named.parse(await (await call(hub, `/sources?SerialNumber=${serialNumber}`)).json());
  if (found === undefined) throw new Error(`the hub has no source ${serialNumber}`);
  return found.id;
}

async function variablesOf(hub: Hub, sourceId: number): Promise<z.output<typeof named>> {
  return named.parse(await (await call(hub, `/variables?SourceId=${sourceId}`)).json());
}

/** Resolves when nothing is due and all is as expected, or with the signal. */
async function derivedOutcomes(
  hub: Hub,
  variableId: number,
  derived: Derived,
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  for (;;) {
    const outcomes = [await calculatedOutcome(hub, variableId, derived), await alarmOutcome(hub, variableId, derived)];
    if (signal.aborted || outcomes.every(({ fault }) => fault === null)) return outcomes;
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined); // The signal ends the loop.
  }
}

async function calculatedOutcome(hub: Hub, id: number, { calculated }: Derived): Promise<Outcome> {
  const open = z.array(z.unknown()).parse(await (await call(hub, `/calculations/progress?VariableIds=${id}`)).json());
  const query = `VariableIds=${id}&Granularity=All&Aggregation=COUNT`;
  const [row] = counted.parse(await (await call(hub, `/data?${query}`)).json());
  const points = row?.countValue ?? 0;
  const fault =
    open.length > 0 ? "is still due" : points === calculated.points ? null : `should have ${calculated.points} points`;
  const found = open.length > 0 ? "due" : "calculated";
  const { name } = calculated.variable;
  return { what: "calculated", name, found, detail: `${points} points, ${calculated.formula}`, fault };
}

async function alarmOutcome(hub: Hub, id: number, { alarm }: Derived): Promise<Outcome> {
  const [row] = alarms.parse(await (await call(hub, `/alarms?variableIds=${id}`)).json());
  const found = row?.state ?? "missing";
  const value = row?.value == null ? "" : `${Number(row.value.toPrecision(DIGITS))} at ${row.since}`;
  const fault = found === alarm.ends ? null : `should have ended ${alarm.ends}`;
  return { what: "alarm", name: alarm.name, found, detail: value, fault };
}
