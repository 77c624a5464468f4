/**
 * `headgate check` at an HTTP intake. A running gateway is not disturbed: its received bodies are only read.
 */
import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import Fastify from "fastify";
import { systemClock } from "#core/clock.ts";
import { ConfigError, HeadgateError, systemCode, wordsOf } from "#core/errors.ts";
import { listenOrExplain } from "#core/listen.ts";
import type { ProbeFinding } from "../drop.ts";
import type { IntakeOptions } from "../options.ts";
import { certificateFinding } from "../probe-findings.ts";
import { RECEIPTS_FILE, type Receipt, Receipts } from "./receipts.ts";

/** `root` is the intake's folder in the spool. */
export async function probeIntake(
  options: IntakeOptions,
  root: string,
  defaultService: string,
): Promise<readonly ProbeFinding[]> {
  try {
    checkTls(options);
    await mkdir(root, { recursive: true });
    await access(root, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (thrown) {
    const hint = thrown instanceof HeadgateError ? thrown.hint : "Check `spool.path` and the rights of this user.";
    return [{ level: "failed", about: "spool", what: wordsOf(thrown), hint }];
  }
  return [await addressFinding(options), ...securityFindings(options), ...userFindings(options, defaultService)];
}

export function checkTls({ name, tls }: IntakeOptions): void {
  if (tls === undefined) return;
  try {
    createSecureContext(tls);
  } catch (cause) {
    throw new ConfigError("HG-INTK-002", { operation: "open intake", subject: name, cause });
  }
}

/** Unfinished bodies of an intake, beside a gateway that may be running. */
function withReceipts<T>(root: string, read: (receipts: Receipts) => T): T | null {
  const path = join(root, RECEIPTS_FILE);
  if (!existsSync(path)) return null;
  const receipts = Receipts.toRead(path);
  try {
    return read(receipts);
  } finally {
    receipts.close();
  }
}

/** Lists the bodies of the intake. */
export function probeWaiting(root: string, onReceipt: (receipt: Receipt) => void): ProbeFinding {
  try {
    const count = withReceipts(root, (receipts) => {
      let waiting = 0;
      for (const receipt of receipts.waiting()) {
        waiting += 1;
        onReceipt(receipt);
      }
      return waiting;
    });
    if (count === null) return { level: "ok", about: "listing", what: "nothing was received yet" };
    return waitingFinding(count);
  } catch (thrown) {
    return unreadable(thrown, "Run the check as the user of the gateway.");
  }
}

/** Lists the bodies of an intake that stores them in the ledger. */
export async function probeShared(
  receipts: AsyncIterable<Receipt>,
  onReceipt: (receipt: Receipt) => void,
): Promise<ProbeFinding> {
  try {
    let waiting = 0;
    for await (const receipt of receipts) {
      waiting += 1;
      onReceipt(receipt);
    }
    return waitingFinding(waiting);
  } catch (thrown) {
    return unreadable(thrown, "Check `ledger`, and that its server can be reached from here.");
  }
}

function waitingFinding(count: number): ProbeFinding {
  return { level: "ok", about: "listing", what: `${count} received bodies wait to be delivered` };
}

function unreadable(thrown: unknown, hint: string): ProbeFinding {
  const what = `the received bodies cannot be read: ${wordsOf(thrown)}`;
  return { level: "warning", about: "listing", what, hint };
}

async function addressFinding({ listen }: IntakeOptions): Promise<ProbeFinding> {
  const app = Fastify();
  try {
    await listenOrExplain(app, listen, "listen");
    return { level: "ok", about: "address", what: `${listen} is available` };
  } catch (thrown) {
    const taken = systemCode(thrown) === "EADDRINUSE";
    const hint = taken
      ? "If the running gateway uses it, this is correct."
      : "Correct `listen`: an address of this machine and a port that this user may use.";
    return { level: taken ? "warning" : "failed", about: "address", what: wordsOf(thrown), hint };
  } finally {
    await app.close();
  }
}

function securityFindings({ tls, listen }: IntakeOptions): readonly ProbeFinding[] {
  if (tls !== undefined) {
    const certificate = new X509Certificate(tls.cert);
    const facts = {
      subject: nameOf(certificate.subject),
      issuer: nameOf(certificate.issuer),
      validUntilMs: Date.parse(certificate.validTo),
    };
    return [certificateFinding(facts, systemClock.now().epochMilliseconds)];
  }
  if (/^(?:127\.|localhost|\[?::1)/.test(listen))
    return [{ level: "ok", about: "encryption", what: "none, on the loopback address" }];
  return [
    {
      level: "warning",
      about: "encryption",
      what: "passwords and readings travel readably: there is no tls",
      hint: "Set `tls.key` and `tls.cert`, or listen on loopback behind a proxy that has them.",
    },
  ];
}

/** The common name of a distinguished name with one part per line; the whole name when it has none. */
function nameOf(distinguished: string): string {
  return /^CN=(.*)$/m.exec(distinguished)?.[1] ?? distinguished.replaceAll("\n", ", ");
}

function userFindings({ users, clients }: IntakeOptions, defaultService: string): readonly ProbeFinding[] {
  const words = users.map(
    ({ username, rights, service }) =>
      `${username} (${rights.join(" and ")} to ${service ?? (defaultService === "" ? "the service" : defaultService)})`,
  );
  const withoutZone = users.filter(({ rights, timeZone }) => rights.includes("push") && timeZone === undefined);
  const findings: ProbeFinding[] = [
    {
      level: "ok",
      about: "users",
      what: `${words.join(", ")}${clients.length === 0 ? "" : `; ${clients.length} OAuth clients`}`,
    },
  ];
  if (withoutZone.length > 0)
    findings.push({
      level: "ok",
      about: "time zone",
      what:
        `none for ${withoutZone.map(({ username }) => username).join(", ")}: ` +
        "a date without zone in a pushed body is quarantined",
      hint: "Set `timeZone` of the user when its device sends local times.",
    });
  return findings;
}
