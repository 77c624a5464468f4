/** A field server in a process of its own: `field-server.ts sftp|ftp ROOT`. */
import { startFieldFtp } from "../test/support/field/ftp.ts";
import { startFieldSftp } from "../test/support/field/sftp.ts";

export interface FieldAnswer {
  readonly port: number;
  readonly hostKey?: string;
}

const [kind, root = ""] = process.argv.slice(2);
const access = { root, username: "bench", password: "bench" };
if (kind === "sftp") {
  const server = await startFieldSftp(access);
  process.stdout.write(`${JSON.stringify({ port: server.port, hostKey: server.hostKeyFingerprint })}\n`);
} else {
  const server = await startFieldFtp(access);
  process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
}
