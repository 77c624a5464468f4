/** vsftpd, which has no MLSD. It knows the users of the machine only. */
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PROGRAMS } from "./installed.ts";
import { type Certificate, writeCertificate } from "./keys.ts";
import { removePerson, systemPerson } from "./people.ts";
import { makeGround, type RealServer, startReal } from "./real-server.ts";

export type Settings = Readonly<Record<string, string | number>>;

export async function startVsftpd(tls: Certificate | null, more: Settings = {}): Promise<RealServer> {
  const ground = await makeGround();
  const shows = join(ground, "shown");
  await mkdir(shows);
  await mkdir(join(ground, "empty"));
  const owner = await systemPerson(shows);
  await chown(shows, owner.uid, owner.gid);
  const file = join(ground, "vsftpd.conf");
  return startReal({
    ground,
    shows,
    seenAs: "/",
    owner,
    async command(port) {
      const settings = {
        ...plain(ground, port),
        ...(tls === null ? {} : encrypted(await writeCertificate(ground, tls))),
        ...more,
      };
      const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
      await writeFile(file, lines.join(""));
      return { program: PROGRAMS.vsftpd, args: [file] };
    },
    settings: () => ({ kind: "ftp", ...(tls === null ? {} : { tls: "explicit", ca: tls.ca }) }),
    clean: () => removePerson(owner),
  });
}

function plain(ground: string, port: number): Settings {
  return {
    listen: "YES",
    listen_address: "127.0.0.1",
    listen_port: port,
    background: "NO",
    anonymous_enable: "NO",
    local_enable: "YES",
    write_enable: "YES",
    // A service without a file of its own, so that the machine's usual rules hold.
    pam_service_name: "headgate-interop",
    local_root: join(ground, "shown"),
    chroot_local_user: "YES",
    allow_writeable_chroot: "YES",
    secure_chroot_dir: join(ground, "empty"),
    vsftpd_log_file: join(ground, "log"),
    xferlog_enable: "NO",
    utf8_filesystem: "YES",
    force_dot_files: "YES",
    seccomp_sandbox: "NO",
  };
}

function encrypted(certificateFile: string): Settings {
  return {
    ssl_enable: "YES",
    rsa_cert_file: certificateFile,
    rsa_private_key_file: certificateFile,
    force_local_logins_ssl: "YES",
    force_local_data_ssl: "YES",
    require_ssl_reuse: "YES",
    ssl_ciphers: "HIGH",
  };
}
