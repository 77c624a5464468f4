/** Facts of the field, at one server of each make. */
import { afterAll, beforeAll } from "vitest";
import { facts, type Quirks } from "./facts.ts";
import { describeWith, type PROGRAMS } from "./installed.ts";
import { makeCertificate } from "./keys.ts";
import { startOpenSsh } from "./openssh.ts";
import { startProftpd } from "./proftpd.ts";
import { startPureFtpd } from "./pure-ftpd.ts";
import { fieldsAt, type RealServer } from "./real-server.ts";
import { startVsftpd } from "./vsftpd.ts";

factsOf("sshd", "OpenSSH", () => startOpenSsh({ jail: true }));
factsOf("vsftpd", "vsftpd with TLS", async () => startVsftpd(await makeCertificate()));
factsOf("proftpd", "ProFTPD with TLS", async () =>
  startProftpd({ speaks: "ftps", tls: await makeCertificate() }, { jail: true }),
);
factsOf("proftpd", "ProFTPD as SFTP server", () => startProftpd({ speaks: "sftp" }, { jail: true }));
factsOf("pure-ftpd", "Pure-FTPd with TLS", async () => startPureFtpd(await makeCertificate()), {
  refuses: ["back\\slash.csv"],
  hides: ["tab\there.csv"],
});

function factsOf(
  program: keyof typeof PROGRAMS,
  name: string,
  start: () => Promise<RealServer>,
  quirks: Quirks = {},
): void {
  describeWith(program, name, () => {
    let server: RealServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.close());
    facts(
      () => server,
      fieldsAt(() => server),
      quirks,
    );
  });
}
