/** Which real servers are on this machine. In CI all of them must be; elsewhere their tests are skipped and say why. */
import { existsSync } from "node:fs";
import { describe, vi } from "vitest";
import { PATIENTLY } from "../e2e/wait.ts";

// Of every test file that asks for a real server.
vi.setConfig(PATIENTLY);

/** Where `.ci/install-servers.sh` unpacks the FTP servers. */
const PREFIX = "/opt/headgate-interop";

export const PROGRAMS = {
  sshd: "/usr/sbin/sshd",
  vsftpd: `${PREFIX}/usr/sbin/vsftpd`,
  proftpd: `${PREFIX}/usr/sbin/proftpd`,
  "pure-ftpd": `${PREFIX}/usr/sbin/pure-ftpd`,
  sftp: "/usr/bin/sftp",
  scp: "/usr/bin/scp",
  lftp: "/usr/bin/lftp",
  curl: "/usr/bin/curl",
  swift: "/usr/lib/python3/dist-packages/swift/proxy/server.py",
  "pure-pw": `${PREFIX}/usr/bin/pure-pw`,
} as const;
export const PROFTPD_MODULES = `${PREFIX}/usr/lib/proftpd`;

/** A suite against a real server; skipped with its reason where the server cannot run, and a failure in CI. */
export function describeWith(program: keyof typeof PROGRAMS, name: string, suite: () => void): void {
  const reason = whyNot(program);
  if (reason !== null && (process.env["CI"] ?? "") !== "")
    throw new Error(`${name}: ${reason}, and CI leaves nothing out`);
  if (reason !== null) console.info(`skipped: ${name}: ${reason}`);
  describe.skipIf(reason !== null)(reason === null ? name : `${name} (skipped: ${reason})`, suite);
}

function whyNot(program: keyof typeof PROGRAMS): string | null {
  if (process.getuid?.() !== 0) return "only root can start servers that change their user";
  if (existsSync(PROGRAMS[program])) return null;
  return `${PROGRAMS[program]} is not installed; .ci/install-servers.sh does that on Debian`;
}
