/** The keys by which clients know the SFTP server. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import ssh2 from "ssh2";
import { writeDurably } from "#core/durable.ts";
import { ConfigError, systemCode, wordsOf } from "#core/errors.ts";

// Node cannot detect this name in the CommonJS module.
const { utils } = ssh2;
const RSA_BITS = 3_072;

/** Private keys as texts. Those of the configuration, or the hub's own, which are made at the first start. */
export async function hostKeysOf(paths: readonly string[] | undefined, folder: string): Promise<readonly string[]> {
  if (paths !== undefined) return await Promise.all(paths.map(keyAt));
  const own: string[] = [];
  for (const type of ["ed25519", "rsa"] as const) {
    const path = join(folder, `host_key_${type}`);
    if ((await textAt(path)) === null) await writeDurably(path, freshHostKey(type));
    own.push(await keyAt(path));
  }
  return own;
}

async function keyAt(path: string): Promise<string> {
  let why = "does not exist";
  try {
    const text = await textAt(path);
    const key = text === null ? null : utils.parseKey(text);
    if (text !== null && key !== null && !(key instanceof Error) && key.isPrivateKey()) return text;
    if (key instanceof Error) why = `cannot be read: ${key.message}`;
    else if (key !== null) why = "is no private key";
  } catch (thrown) {
    why = `cannot be read: ${wordsOf(thrown)}`;
  }
  throw new ConfigError("HG-HUB-005", {
    operation: "start hub",
    subject: path,
    message: `the host key ${path} ${why}`,
    hint: "Name private keys without a passphrase in `transfer.sftp.hostKeys`, readable for this user.",
  });
}

async function textAt(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

/** ssh2 sometimes generates a key that it cannot read itself; then another one is generated. */
export function freshHostKey(type: "ed25519" | "rsa"): string {
  for (;;) {
    const key =
      type === "rsa"
        ? utils.generateKeyPairSync("rsa", { bits: RSA_BITS }).private
        : utils.generateKeyPairSync("ed25519").private;
    if (!(utils.parseKey(key) instanceof Error)) return key;
  }
}
