/** OpenSSH with its built-in SFTP server, as it stands on most machines, or as a jail that does nothing but SFTP. */
import { chown, copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PROGRAMS } from "./installed.ts";
import { makeSshKey, type SshKey } from "./keys.ts";
import { removePerson, systemPerson } from "./people.ts";
import { makeGround, type RealServer, startReal } from "./real-server.ts";

export interface OpenSsh extends RealServer {
  readonly hostKey: SshKey;
  /** A key with which the user may log in. */
  readonly userKey: SshKey;
  /** Takes effect at the next start. */
  changeHostKey(): Promise<SshKey>;
}

export interface OpenSshKind {
  readonly jail: boolean;
  /** More lines of `sshd_config`. */
  readonly config?: readonly string[];
  readonly passphrase?: string;
}

export async function startOpenSsh({ jail, config = [], passphrase = "" }: OpenSshKind): Promise<OpenSsh> {
  await mkdir("/run/sshd", { recursive: true }); // Without it sshd does not start.
  // A jail must not lie below a folder that others may write to, such as the one for temporary files.
  const ground = await makeGround(jail ? "/run" : undefined);
  const shows = join(ground, "shown", "drop");
  await mkdir(shows, { recursive: true });
  const owner = await systemPerson(shows);
  await chown(shows, owner.uid, owner.gid);
  const hostKey = await makeSshKey(ground, "host");
  const userKey = await makeSshKey(ground, "user", "ed25519", passphrase);
  await copyFile(userKey.publicFile, join(ground, "authorized"));
  const configured = [
    ...config, // The first value of an option counts.
    "ListenAddress 127.0.0.1",
    `HostKey ${hostKey.file}`,
    `AuthorizedKeysFile ${join(ground, "authorized")}`,
    "StrictModes no",
    "PidFile none",
    "UsePAM no",
    "PermitRootLogin no",
    "MaxStartups 100",
    `AllowUsers ${owner.username}`,
    "Subsystem sftp internal-sftp",
    ...(jail ? [`ChrootDirectory ${join(ground, "shown")}`, "ForceCommand internal-sftp"] : []),
  ];
  const server = await startReal({
    ground,
    shows,
    seenAs: jail ? "/drop" : shows,
    owner,
    async command(port) {
      const file = join(ground, "sshd_config");
      await writeFile(file, [`Port ${port}`, ...configured, ""].join("\n"));
      return { program: PROGRAMS.sshd, args: ["-D", "-e", "-f", file] };
    },
    settings: () => ({ kind: "sftp", hostKeys: [hostKey.fingerprint] }),
    clean: () => removePerson(owner),
  });
  let changes = 0;
  return {
    ...server,
    hostKey,
    userKey,
    async changeHostKey() {
      changes += 1;
      const next = await makeSshKey(ground, `host-${changes}`);
      await copyFile(next.file, hostKey.file);
      await copyFile(next.publicFile, hostKey.publicFile);
      return next;
    },
  };
}
