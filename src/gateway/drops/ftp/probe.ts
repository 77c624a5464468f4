/** `headgate check` at an FTP drop. */
import { Readable } from "node:stream";
import { TLSSocket } from "node:tls";
import { FTPError } from "basic-ftp";
import { systemClock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { ProbeFinding } from "../drop.ts";
import type { FtpOptions } from "../options.ts";
import type { ProbeSteps } from "../probe.ts";
import { certificateFinding, saidWords } from "../probe-findings.ts";
import type { TrialFiles } from "../probe-trial.ts";
import type { DataSeen } from "./client.ts";
import { type FtpConnections, type FtpLink, portOf } from "./connections.ts";
import { mlsdTimeMs, parseMlsxLine } from "./list-parser.ts";

/** Response codes for an unknown command (RFC 959, section 4.2). */
const NOT_IMPLEMENTED = [500, 501, 502, 504];
/** Features that the drop uses, as FEAT names them (RFC 2389). */
const FEATURES = ["MLST", "MDTM", "SIZE", "REST", "UTF8", "EPSV"];

export function ftpSteps(options: FtpOptions, connections: FtpConnections): ProbeSteps {
  return {
    greet: (signal) =>
      connections.use(signal, async (link) => {
        const system = await link.client.sendIgnoringError("SYST");
        return [
          serverFinding(options, link, system.code === 215 ? system.message : ""),
          ...certificateFindings(link),
          ...featureFindings(options, link),
        ];
      }),
    transferred: (signal) => connections.use(signal, async ({ client }) => dataFindings(client.dataSeen)),
  };
}

function serverFinding(options: FtpOptions, { greeting }: FtpLink, system: string): ProbeFinding {
  const { host, username, tls } = options;
  const said = saidWords([saidWords(greeting, 60), saidWords(system, 40)].filter(Boolean).join("; "));
  const login = `logged in to ${host}:${portOf(options)} as ${username}`;
  const finding = { about: "server", what: `${said === "" ? "" : `“${said}”, `}${login}` } as const;
  if (tls !== "none") return { level: "ok", ...finding, what: `${finding.what} with ${tls} TLS` };
  return {
    level: "warning",
    ...finding,
    what: `${finding.what} without encryption`,
    hint: "The password goes over the network readably; set `tls: explicit` if the server can.",
  };
}

function certificateFindings({ client }: FtpLink): readonly ProbeFinding[] {
  const { socket } = client.ftp;
  if (!(socket instanceof TLSSocket)) return [];
  const { subject, issuer, valid_to } = socket.getPeerCertificate();
  const name = (of: typeof subject | undefined) => one(of?.CN) ?? one(of?.O) ?? "an unnamed subject";
  const facts = {
    subject: name(subject),
    issuer: name(issuer),
    validUntilMs: Date.parse(valid_to),
  };
  return [certificateFinding(facts, systemClock.now().epochMilliseconds)];
}

function one(names: string | string[] | undefined): string | undefined {
  return Array.isArray(names) ? names[0] : names;
}

function featureFindings({ tls, listing }: FtpOptions, { features }: FtpLink): readonly ProbeFinding[] {
  const offered = FEATURES.filter((name) => features.has(name));
  const missing = FEATURES.filter((name) => !features.has(name));
  // Servers list AUTH once for each mechanism, or with all of them.
  const auth = features.has("AUTH") ? ["AUTH TLS"] : [];
  const lacks = missing.length === 0 ? "" : `; not ${missing.join(", ")}`;
  const what = `${[...offered, ...auth].join(", ") || "none is listed"}${lacks}`;
  const findings: ProbeFinding[] = [];
  const blunt = !features.has("MLST") && (!features.has("MDTM") || listing === "list");
  findings.push(
    blunt
      ? {
          level: "warning",
          about: "features",
          what,
          hint:
            "Times have a precision of a minute at best here: a file that is rewritten within its minute with the " +
            "same length looks unchanged. Let senders use new names, temporary names or done-files.",
        }
      : { level: "ok", about: "features", what },
  );
  if (tls === "none" && auth.length > 0)
    findings.push({
      level: "ok",
      about: "encryption",
      what: "the server offers AUTH TLS, and it is not used",
      hint: "Set `tls: explicit`.",
    });
  return findings;
}

function dataFindings(seen: DataSeen | null): readonly ProbeFinding[] {
  if (seen === null) return [];
  const { way, announced, used, reused, protocol } = seen;
  const replaced = announced !== null && announced !== used;
  const passive: ProbeFinding = {
    level: "ok",
    about: "passive",
    what:
      announced === null
        ? `${way}: data connections go to ${used}, as the control connection does`
        : replaced
          ? `${way} announces ${announced}, which is replaced by ${used}, the address of the control connection`
          : `${way} announces ${announced}, and data connections go there`,
    ...(replaced
      ? {
          hint: "The server announces its inner address. That is fine as long as `passiveAddress` is control.",
        }
      : {}),
  };
  if (reused === null) return [passive];
  const session: ProbeFinding = {
    level: "ok",
    about: "TLS session",
    what: `data connections ${reused ? "resume the TLS session" : "use a TLS session of their own"} (${protocol})`,
  };
  return [passive, session];
}

export interface FtpTrialFacts {
  readonly connections: FtpConnections;
  /** As the drop reports it. */
  exists(path: string, signal: AbortSignal): Promise<boolean>;
}

export function ftpTrial({ connections, exists }: FtpTrialFacts, signal: AbortSignal): TrialFiles {
  const ask = <T>(work: (link: FtpLink) => Promise<T>) => connections.use(signal, work);
  const full = (link: Pick<FtpLink, "root">, path: string) => `${link.root.replace(/\/$/, "")}/${path}`;
  const send = (command: string, path: string) =>
    ask(async (link) => void (await link.client.send(`${command} ${full(link, path)}`)));
  return {
    write: (path, content) =>
      ask(async (link) => {
        await link.client.uploadFrom(Readable.from([Buffer.from(content)]), full(link, path));
      }),
    modified: (path) => ask((link) => modified(link, full(link, path))),
    exists: (path) => exists(path, signal),
    isFolder: (path) =>
      ask(async (link) => (await link.client.sendIgnoringError(`CWD ${full(link, path)}`)).code < 400),
    makeFolder: (path) => send("MKD", path),
    removeFolder: (path) => send("RMD", path),
    move: (from, to) => ask(async (link) => void (await link.client.rename(full(link, from), full(link, to)))),
    remove: (path) => send("DELE", path),
    isRefusal: (thrown) =>
      thrown instanceof FTPError &&
      (NOT_IMPLEMENTED.includes(thrown.code) ||
        // The same code means missing and forbidden, so the text decides.
        /denied|not permitted|not allowed|forbidden|prohibited|read[- ]?only/i.test(wordsOf(thrown))),
  };
}

async function modified(
  { client, features }: FtpLink,
  path: string,
): Promise<{ readonly atMs: number; readonly precisionMs: number } | null> {
  const response = features.has("MDTM")
    ? await client.sendIgnoringError(`MDTM ${path}`)
    : await client.sendIgnoringError(`MLST ${path}`);
  if (response.code >= 400) return null;
  const facts = response.message.split(/\r?\n/).find((line) => line.startsWith(" "));
  const stamp =
    /^213[ -]+(\d{14}(?:\.\d+)?)/.exec(response.message)?.[1] ??
    (facts === undefined ? undefined : parseMlsxLine(facts.slice(1))?.changed);
  const atMs = stamp === undefined ? null : mlsdTimeMs(stamp);
  return atMs === null || stamp === undefined ? null : { atMs, precisionMs: stamp.includes(".") ? 1 : 1000 };
}
