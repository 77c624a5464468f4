/**
 * The environment of the demo: its state folder, the hub with its structure, the field servers, and the gateway's
 * configuration.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseDocument } from "yaml";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { createLog } from "#core/log.ts";
import { narrowModes, PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { type ProcessLock, takeProcessLock } from "#core/sql/process-lock.ts";
import { loadHubOptions } from "#hub/config.ts";
import { freshHostKey } from "#hub/transfer/host-keys.ts";
import { startPlatform } from "../../platform.ts";
import { buildDerived } from "./derived.ts";
import type { SentTo } from "./devices.ts";
import { type Field, startField } from "./field.ts";
import { readScenario, readStructure, type Scenario } from "./scenario.ts";
import { buildStructure } from "./structure.ts";

export interface DemoGround {
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
export interface DemoLinks {
  /** Signs in once; absent until the gateway runs. */
  readonly console?: string;
  readonly explorer: string;
  readonly explorerUser: string;
  readonly explorerPassword: string;
}

/** Marks a folder as the demo's own, so that no other folder is ever emptied. */
const MARKER = "this folder belongs to the headgate demo";
const PACKAGE = resolve(import.meta.dirname, "../../../..");

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

export function writeLinks(state: string, links: DemoLinks): void {
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
