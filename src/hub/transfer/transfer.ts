/**
 * The file-transfer server: senders that only know SFTP or FTP write to the folder of their account, and complete files
 * become stored ones.
 */
import { mkdir } from "node:fs/promises";
import { ConfigError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { logNarrowed, narrowModes, PRIVATE_FOLDER } from "#core/private-files.ts";
import { startFault } from "#core/start-fault.ts";
import type { HubContext } from "../context.ts";
import type { HubOptions } from "../options.ts";
import { openFolders } from "./folders.ts";
import { hostKeysOf } from "./host-keys.ts";
import { type RunningServers, startServers } from "./servers.ts";
import { createSignIn } from "./sign-in.ts";
import { createTaker } from "./take.ts";

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\]):/;

/** When it is closed, uploads that are being written can be continued after a start. */
export type RunningTransfer = RunningServers;

type Parts = Pick<HubContext, "options" | "store" | "clock" | "log" | "files" | "passwords">;

/** Null when the configuration has none. */
export async function startTransfer(context: Parts): Promise<RunningTransfer | null> {
  const { options, store, clock, log, passwords } = context;
  const { transfer } = options;
  if (transfer === undefined) return null;
  const path = folderOf(options);
  const { files } = context;
  if (files === null) throw without("`files.path`, or `files.local` beside a bucket");
  await makeFolder(path);
  logNarrowed(narrowModes([path]), log);
  const hostKeys = transfer.sftp === undefined ? [] : await hostKeysOf(transfer.sftp.hostKeys, path);
  const taker = createTaker({ options, store, clock, log }, files);
  const folders = await openFolders(await store.identity.accountIds(), {
    path,
    options: transfer,
    bytesMax: options.limits.file,
    taker,
    clock,
    log,
  });
  try {
    const signIn = createSignIn({ options, people: store.people, folders, passwords, log });
    const servers = await startServers(transfer, { signIn, hostKeys, log, clock });
    warnOfPlain(options, log);
    const close = async () => {
      await servers.close();
      await folders.close();
      await taker.close();
    };
    return { addresses: servers.addresses, close };
  } catch (thrown) {
    await folders.close();
    throw thrown;
  }
}

function warnOfPlain({ transfer }: HubOptions, log: Logger): void {
  const ftp = transfer?.ftp;
  if (ftp === undefined || ftp.tls?.required === true || LOOPBACK.test(ftp.listen)) return;
  log.warn({ listen: ftp.listen }, "FTP without TLS is permitted: passwords can be read on the way");
}

function folderOf({ store, transfer }: HubOptions): string {
  if (transfer?.path !== undefined) return transfer.path;
  if (store.kind === "sqlite") return `${store.path}.transfer`;
  throw without("`transfer.path`");
}

function without(setting: string): ConfigError {
  return new ConfigError("HG-HUB-005", {
    operation: "start hub",
    subject: "transfer",
    message: `with a PostgreSQL store, the file-transfer server needs ${setting}`,
  });
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: PRIVATE_FOLDER });
  } catch (cause) {
    const message = `the folder of the file-transfer server cannot be used: ${wordsOf(cause)}`;
    throw startFault("HG-HUB-005", { operation: "start hub", subject: path, message, cause });
  }
}
