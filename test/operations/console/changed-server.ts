/** An SFTP server with another host key than the drop trusts. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import ssh2 from "ssh2";
import { startFieldSftp } from "../../support/field/sftp.ts";

const user = { username: "meter", password: "open sesame" };

/** It had a key, which is pinned, and has another one from now on. The caller closes it. */
export async function changedServer(folder: string, more: Readonly<Record<string, unknown>> = {}) {
  const root = join(folder, "remote");
  mkdirSync(root, { recursive: true });
  const former = await startFieldSftp({ root, ...user });
  await former.close();
  const hostKey = ssh2.utils.generateKeyPairSync("ed25519").private;
  const server = await startFieldSftp({ root, ...user, port: former.port, hostKey });
  const { host, port, hostKeyFingerprint: present } = server;
  const options = { kind: "sftp", name: "field", host, port, ...user, hostKeys: [former.hostKeyFingerprint], ...more };
  return { options, root, present, pinned: former.hostKeyFingerprint, server };
}
