/** Keys and certificates, made anew for each test file. */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./server-process.ts";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** PEM of the authority that signed the certificate. */
  readonly ca: string;
}

/** A certificate for 127.0.0.1, signed by an authority of its own. */
export async function makeCertificate(): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-"));
  const at = (name: string) => join(folder, name);
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const days = ["-days", "2"];
  const authority = ["-keyout", at("ca.key"), "-out", at("ca.crt")];
  try {
    await run("openssl", "req", "-x509", ...ec, ...days, "-subj", "/CN=test authority", ...authority);
    await run("openssl", "req", ...ec, "-subj", "/CN=localhost", "-keyout", at("key"), "-out", at("csr"));
    await writeFile(at("ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    const signing = ["-CA", at("ca.crt"), "-CAkey", at("ca.key"), "-CAcreateserial", "-extfile", at("ext")];
    await run("openssl", "x509", "-req", ...days, "-in", at("csr"), ...signing, "-out", at("crt"));
    const [cert, key, ca] = await Promise.all(
      [at("crt"), at("key"), at("ca.crt")].map((file) => readFile(file, "utf8")),
    );
    if (cert === undefined || key === undefined || ca === undefined) throw new Error("openssl wrote no certificate");
    return { cert, key, ca };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** One file with key and certificate, as all the servers read it. */
export async function writeCertificate(folder: string, { key, cert }: Certificate): Promise<string> {
  const file = join(folder, "certificate.pem");
  await writeFile(file, key + cert, { mode: 0o600 });
  return file;
}

export interface SshKey {
  readonly file: string;
  readonly publicFile: string;
  /** As OpenSSH tells it, without our code: `SHA256:` and 43 characters. */
  readonly fingerprint: string;
}

export async function makeSshKey(folder: string, name: string, type = "ed25519", passphrase = ""): Promise<SshKey> {
  const file = join(folder, name);
  await run("ssh-keygen", "-q", "-t", type, "-N", passphrase, "-C", name, "-f", file);
  const told = await run("ssh-keygen", "-l", "-E", "sha256", "-f", `${file}.pub`);
  return { file, publicFile: `${file}.pub`, fingerprint: told.split(" ")[1] ?? "" };
}

export function digestOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
