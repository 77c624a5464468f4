/** The file servers of the demo's sites: the hub's SFTP and FTP servers, over a plain folder for each user. */
import ssh2 from "ssh2";
import { systemClock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { fingerprintOf } from "#gateway/drops/sftp/known-hosts.ts";
import type { FileTree } from "#hub/transfer/file-tree.ts";
import { transferOptions } from "#hub/transfer/options.ts";
import { startServers } from "#hub/transfer/servers.ts";
import type { SignIn } from "#hub/transfer/sign-in.ts";
import { servedFolder } from "./served-folder.ts";

export interface FieldUser {
  readonly username: string;
  readonly password: string;
  readonly folder: string;
}

export interface Field {
  readonly sftpPort: number;
  readonly ftpPort: number;
  readonly hostKeyFingerprint: string;
  close(): Promise<void>;
}

/** On free ports of loopback. `hostKey`: the text of a private key. */
export async function startField(users: readonly FieldUser[], hostKey: string, log: Logger): Promise<Field> {
  const listen = "127.0.0.1:0";
  const options = transferOptions.parse({ sftp: { listen }, ftp: { listen } });
  const signIn = await signInOf(users);
  const servers = await startServers(options, { signIn, hostKeys: [hostKey], log, clock: systemClock });
  const { sftp, ftp } = servers.addresses;
  return {
    sftpPort: portOf(sftp),
    ftpPort: portOf(ftp),
    hostKeyFingerprint: fingerprintOfKey(hostKey),
    close: () => servers.close(),
  };
}

export function portOf(address: string | null): number {
  return Number((address ?? "").split(":").at(-1));
}

export function fingerprintOfKey(privateKey: string): string {
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) throw key;
  return fingerprintOf(key.getPublicSSH());
}

async function signInOf(users: readonly FieldUser[]): Promise<SignIn> {
  const trees = new Map<string, FileTree>();
  for (const { username, folder } of users) trees.set(username, await servedFolder(folder));
  return {
    async byPassword(username, password) {
      const tree = trees.get(username);
      const isRight = users.some((user) => user.username === username && user.password === password);
      if (tree === undefined || !isRight) return { kind: "refused" };
      return { kind: "user", user: { username, accounts: [1], treeFor: () => tree } };
    },
    byKey: async () => ({ kind: "refused" }),
  };
}
