/** ProFTPD: FTP, FTP with explicit TLS, and its own SSH server for SFTP (mod_sftp). */
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PROFTPD_MODULES, PROGRAMS } from "./installed.ts";
import { type Certificate, makeSshKey, writeCertificate } from "./keys.ts";
import { virtualPerson } from "./people.ts";
import { makeGround, type RealServer, startReal } from "./real-server.ts";

export type ProftpdKind =
  | { readonly speaks: "ftp" }
  | { readonly speaks: "ftps"; readonly tls: Certificate }
  | { readonly speaks: "sftp" };

export async function startProftpd(kind: ProftpdKind, { jail = false } = {}): Promise<RealServer> {
  const ground = await makeGround();
  const shows = join(ground, "shown");
  await mkdir(shows);
  const owner = await virtualPerson();
  await chown(shows, owner.uid, owner.gid);
  const users = join(ground, "users");
  const user = [owner.username, owner.passwordHash, owner.uid, owner.gid, "", shows, "/bin/sh"];
  await writeFile(users, `${user.join(":")}\n`, { mode: 0o600 });
  const hostKey = await makeSshKey(ground, "host", "rsa");
  const file = join(ground, "proftpd.conf");
  const protocol =
    kind.speaks === "ftps"
      ? encrypted(await writeCertificate(ground, kind.tls))
      : kind.speaks === "sftp"
        ? sftp(hostKey.file)
        : [];
  return startReal({
    ground,
    shows,
    seenAs: jail ? "/" : shows,
    owner,
    async command(port) {
      await writeFile(
        file,
        [...common(ground, port, users), ...protocol, ...(jail ? ["DefaultRoot ~"] : []), ""].join("\n"),
      );
      return { program: PROGRAMS.proftpd, args: ["--nodaemon", "--quiet", "--config", file] };
    },
    settings: () =>
      kind.speaks === "sftp"
        ? { kind: "sftp", hostKeys: [hostKey.fingerprint] }
        : { kind: "ftp", ...(kind.speaks === "ftps" ? { tls: "explicit", ca: kind.tls.ca } : {}) },
  });
}

function common(ground: string, port: number, users: string): readonly string[] {
  return [
    `ModulePath ${PROFTPD_MODULES}`,
    "ServerType standalone",
    "ServerName headgate-interop",
    "UseIPv6 off",
    "UseReverseDNS off",
    "DefaultAddress 127.0.0.1",
    "SocketBindTight on",
    `Port ${port}`,
    "User nobody",
    "Group nogroup",
    `PidFile ${join(ground, "pid")}`,
    "ScoreboardFile none",
    "DelayEngine off",
    "WtmpLog off",
    "TransferLog none",
    `SystemLog ${join(ground, "log")}`,
    "AuthOrder mod_auth_file.c",
    `AuthUserFile ${users}`,
    "RequireValidShell off",
    "AllowOverwrite on",
  ];
}

function encrypted(certificateFile: string): readonly string[] {
  return [
    "LoadModule mod_tls.c",
    "TLSEngine on",
    "TLSRequired on",
    `TLSECCertificateFile ${certificateFile}`,
    `TLSECCertificateKeyFile ${certificateFile}`,
  ];
}

function sftp(hostKeyFile: string): readonly string[] {
  return ["LoadModule mod_sftp.c", "SFTPEngine on", `SFTPHostKey ${hostKeyFile}`, "SFTPAuthMethods password"];
}
