/** Keys and certificates, made anew for each test file. */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./server-process.ts";

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Certificate and key in one file. */
  readonly bundleFile: string;
  /** PEM of the authority that signed the certificate. */
  readonly ca: string;
}

/** A certificate for 127.0.0.1, signed by an authority of its own. */
export async function makeCertificate(folder: string, name = "server"): Promise<TlsFiles> {
  const at = (ending: string) => join(folder, `${name}${ending}`);
  const openssl = (...args: string[]) => run("openssl", ...args);
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await openssl(
    "req",
    "-x509",
    ...ec,
    "-days",
    "2",
    "-subj",
    `/CN=${name} authority`,
    "-keyout",
    at("-ca.key"),
    "-out",
    at("-ca.crt"),
  );
  await openssl("req", ...ec, "-subj", "/CN=localhost", "-keyout", at(".key"), "-out", at(".csr"));
  await writeFile(at(".ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
  await openssl(
    "x509",
    "-req",
    "-days",
    "2",
    "-in",
    at(".csr"),
    "-CA",
    at("-ca.crt"),
    "-CAkey",
    at("-ca.key"),
    "-CAcreateserial",
    "-extfile",
    at(".ext"),
    "-out",
    at(".crt"),
  );
  const [certificate, key] = await Promise.all([readFile(at(".crt"), "utf8"), readFile(at(".key"), "utf8")]);
  await writeFile(at(".pem"), key + certificate, { mode: 0o600 });
  return {
    certFile: at(".crt"),
    keyFile: at(".key"),
    bundleFile: at(".pem"),
    ca: await readFile(at("-ca.crt"), "utf8"),
  };
}

export interface SshKey {
  readonly file: string;
  readonly publicFile: string;
  /** As OpenSSH tells it, without our code: `SHA256:` and 43 characters. */
  readonly fingerprint: string;
}

export async function makeSshKey(
  folder: string,
  name: string,
  type = "ed25519",
  passphrase = "",
): Promise<SshKey> {
  const file = join(folder, name);
  await run("ssh-keygen", "-q", "-t", type, "-N", passphrase, "-C", name, "-f", file);
  const told = await run("ssh-keygen", "-l", "-E", "sha256", "-f", `${file}.pub`);
  return { file, publicFile: `${file}.pub`, fingerprint: told.split(" ")[1] ?? "" };
}

export function digestOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
