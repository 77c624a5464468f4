/** Users for the servers: one of the system where a server knows no other, and numbers without a name elsewhere. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { run } from "./server-process.ts";

export interface Person {
  readonly username: string;
  readonly password: string;
  /** Of the password, as crypt(3) knows it. */
  readonly passwordHash: string;
  readonly uid: number;
  readonly gid: number;
}

const PREFIX = "headgate-test-";

/** An account that only a server's own user file knows. */
export async function virtualPerson(): Promise<Person> {
  const password = randomBytes(12).toString("hex");
  return { username: "meter", password, passwordHash: await hashOf(password), uid: 65_534, gid: 65_534 };
}

/** An unprivileged account of this machine, until `removePerson`. Those of runs that were killed are removed first. */
export async function systemPerson(home: string): Promise<Person> {
  for (const line of (await readFile("/etc/passwd", "utf8")).split("\n")) {
    const left = line.split(":")[0] ?? "";
    if (left.startsWith(PREFIX) && !isAlive(Number(left.split("-")[2]))) await run("userdel", left);
  }
  const username = `${PREFIX}${process.pid}-${randomBytes(2).toString("hex")}`;
  const password = randomBytes(12).toString("hex");
  const passwordHash = await hashOf(password);
  await run(
    "useradd",
    "--no-create-home",
    "--home-dir",
    home,
    "--shell",
    "/bin/sh",
    "--password",
    passwordHash,
    username,
  );
  const uid = Number(await run("id", "-u", username));
  return { username, password, passwordHash, uid, gid: Number(await run("id", "-g", username)) };
}

export async function removePerson(person: Person): Promise<void> {
  // By force: a session of the stopped server may still be ending.
  await run("userdel", "--force", person.username);
}

function hashOf(password: string): Promise<string> {
  return run("openssl", "passwd", "-6", password);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
