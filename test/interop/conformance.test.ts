/** The drops' conformance suite against the servers that stand in the field. */
import { afterAll, beforeAll } from "vitest";
import { conforms } from "../drops/conformance.ts";
import { describeWith, type PROGRAMS } from "./installed.ts";
import { makeCertificate } from "./keys.ts";
import { startOpenSsh } from "./openssh.ts";
import { startProftpd } from "./proftpd.ts";
import { startPureFtpd } from "./pure-ftpd.ts";
import { fieldsAt, type RealServer } from "./real-server.ts";
import { startVsftpd } from "./vsftpd.ts";

conformsAt("sshd", "OpenSSH", () => startOpenSsh({ jail: false }));
conformsAt("sshd", "OpenSSH that jails its users", () => startOpenSsh({ jail: true }));
conformsAt("vsftpd", "vsftpd", () => startVsftpd(null));
conformsAt("vsftpd", "vsftpd with TLS that requires session reuse", async () => startVsftpd(await makeCertificate()));
conformsAt("proftpd", "ProFTPD", () => startProftpd({ speaks: "ftp" }));
conformsAt("proftpd", "ProFTPD with TLS", async () => startProftpd({ speaks: "ftps", tls: await makeCertificate() }));
conformsAt("proftpd", "ProFTPD as SFTP server", () => startProftpd({ speaks: "sftp" }));
conformsAt("pure-ftpd", "Pure-FTPd", () => startPureFtpd(null));
conformsAt("pure-ftpd", "Pure-FTPd with TLS", async () => startPureFtpd(await makeCertificate()));

function conformsAt(program: keyof typeof PROGRAMS, name: string, start: () => Promise<RealServer>): void {
  describeWith(program, name, () => {
    let server: RealServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.close());
    conforms(
      "a drop",
      fieldsAt(() => server),
    );
  });
}
