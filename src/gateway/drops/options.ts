/** Configuration of a drop, a discriminated union by `kind`. */
import { posix } from "node:path";
import { z } from "zod";
import { duration } from "#core/quantities.ts";
import { common, finish, finishRule, names, settle, timeouts } from "./common-options.ts";
import { intakeShape } from "./intake/options.ts";

export const localOptions = z.strictObject({
  kind: z.literal("local"),
  path: z
    .string()
    .min(1)
    .describe("The folder that is watched.")
    .meta({ examples: ["/srv/drops/meters"] }),
  watch: z
    .boolean()
    .default(true)
    .describe(
      "Whether file-system events make polls come sooner; polls happen in any case. They are not used in a folder " +
        "of more than 20,000 files or 500 folders. Default true.",
    ),
  names,
  ...common,
});

const fingerprint = z
  .string()
  .regex(/^SHA256:[A-Za-z0-9+/]{43}=?$/, "expected a fingerprint such as SHA256: and 43 characters")
  .transform((pin) => pin.replace(/=$/, ""));

const sftpOptions = z
  .strictObject({
    kind: z.literal("sftp"),
    host: z.string().min(1).describe("Name or address of the server."),
    port: z.int().min(1).max(65_535).default(22).describe("Port of the server. Default 22."),
    path: z
      .string()
      .min(1)
      .default(".")
      .describe("Folder on the server, absolute or relative to where the login leads. Default there."),
    username: z.string().min(1).describe("User name at the server."),
    password: z.string().optional().describe("Password, also used for keyboard-interactive.").meta({ secret: true }),
    privateKey: z
      .string()
      .optional()
      .describe("Private key (OpenSSH or PEM text).")
      .meta({ secret: true, examples: ["${file:/etc/headgate/id_ed25519}"] }),
    passphrase: z.string().optional().describe("Passphrase of the private key.").meta({ secret: true }),
    agent: z.string().optional().describe("Socket of an SSH agent."),
    knownHosts: z
      .string()
      .min(1)
      .optional()
      .describe(
        "File with the server's host keys in OpenSSH's format (known_hosts): hashed names and @revoked are " +
          "understood, @cert-authority is not. Used beside `hostKeys`.",
      )
      .meta({ examples: ["/etc/ssh/ssh_known_hosts"] }),
    approvedHosts: z
      .string()
      .min(1)
      .optional()
      .describe(
        "File in the same format to which the gateway adds keys that a person approves in the console; they are " +
          "trusted beside the others. Default: `known_hosts` in the folder of the spool.",
      )
      .meta({ examples: ["/var/lib/headgate/known_hosts"] }),
    algorithms: z
      .enum(["modern", "legacy"])
      .default("modern")
      .describe(
        "legacy also allows algorithms that are broken or weak (SHA-1, CBC, DSA), for servers that support no " +
          "others. Default modern.",
      ),
    hostKeys: z
      .array(fingerprint)
      .default([])
      .describe(
        "Fingerprints of the server's host keys: the current one, and the next before it changes. Without a match " +
          "nothing is sent; the message shows the line to add.",
      )
      .meta({ examples: [["SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIDTMczCvj3tD2s"]] }),
    timeouts: timeouts.describe("Deadlines."),
    names,
    keepAlive: duration("15s").describe("Time between keep-alive messages; three unanswered end the connection."),
    maxChannels: z
      .int()
      .min(1)
      .max(10)
      .default(4)
      .describe("Most SFTP channels on the one connection, and most files fetched at once. Default 4."),
    ...common,
  })
  .refine(
    (drop) => drop.password !== undefined || drop.privateKey !== undefined || drop.agent !== undefined,
    "expected password, privateKey or agent",
  );

export const ftpOptions = z.strictObject({
  kind: z.literal("ftp"),
  host: z.string().min(1).describe("Name or address of the server."),
  port: z.int().min(1).max(65_535).optional().describe("Port of the server. Default 21, or 990 for implicit TLS."),
  path: z
    .string()
    .min(1)
    .default(".")
    .describe("Folder on the server, absolute or relative to where the login leads. Default there."),
  username: z.string().min(1).describe("User name at the server."),
  password: z.string().describe("Password.").meta({ secret: true }),
  tls: z
    .enum(["none", "explicit", "implicit"])
    .default("none")
    .describe(
      "Encryption: none, explicit (AUTH TLS on the usual port) or implicit. Certificates are verified. Default none.",
    ),
  ca: z
    .string()
    .optional()
    .describe("Certificates (PEM) to trust instead of the public ones.")
    .meta({ examples: ["${file:/etc/headgate/ca.pem}"] }),
  clientCertificate: z
    .strictObject({
      certificate: z.string().min(1).describe("Certificate (PEM), with those between it and its root."),
      key: z.string().min(1).describe("Its private key (PEM).").meta({ secret: true }),
      passphrase: z.string().optional().describe("Passphrase of the private key.").meta({ secret: true }),
    })
    .optional()
    .describe("Client certificate for the server, beside the password."),
  timeouts: timeouts.describe("Deadlines."),
  passive: z
    .enum(["auto", "epsv", "pasv"])
    .default("auto")
    .describe("How data connections are requested: EPSV, PASV, or EPSV and then PASV. Default auto."),
  passiveAddress: z
    .enum(["control", "announced"])
    .default("control")
    .describe(
      "Where PASV's data connection goes: to the address of the control connection, since servers behind an " +
        "address translation announce their inner one; or to the announced one. Default control.",
    ),
  names,
  listing: z
    .enum(["auto", "mlsd", "list"])
    .default("auto")
    .describe(
      "How folders are listed: auto is MLSD where the server offers it, and elsewhere LIST with a query (MDTM) " +
        "for the time of each new file; list is only LIST, which has times by the minute at best. Default auto.",
    ),
  maxConnections: z.int().min(1).max(20).default(3).describe("Most connections to the server at once. Default 3."),
  ...common,
});

const {
  settle: _settle,
  temporaryNames,
  include,
  exclude,
  recursive,
  depthMax,
  initial,
  maxFileSize,
  ...shared
} = common;
/** An arrival by HTTP is complete at once, so these settings of other drops do not apply to it. */
const settledIntake = z
  .strictObject({ settle, temporaryNames, include, exclude, recursive, depthMax, initial, maxFileSize })
  .parse({ settle: { observations: 1, interval: "0s" }, temporaryNames: [] });

const intakeOptions = z
  .strictObject({
    ...intakeShape,
    ...shared,
    // No sender writes into a received body.
    finish: finish
      .unwrap()
      .omit({ guard: true })
      .extend({
        delivered: finishRule
          .prefault("delete")
          .describe("What happens to a received body whose batches were all accepted. Default: delete."),
      })
      .prefault({})
      .describe("What happens to received bodies, by how they ended."),
  })
  .transform((options) => ({ ...settledIntake, ...options, finish: { ...options.finish, guard: 0 } }));

export const dropOptions = z.discriminatedUnion("kind", [localOptions, sftpOptions, ftpOptions, intakeOptions]);

const leave = finishRule.parse("leave");
/**
 * Files that a hub took itself, which stay in its storage; only a gateway inside a hub has such drops. One that is
 * offered again came back by a person's command.
 */
export const hubDropOptions = z
  .strictObject({ kind: z.literal("hub"), ...shared, maxFileSize })
  .omit({ finish: true, duplicates: true, expectUnmatched: true })
  .transform((options) => ({
    ...settledIntake,
    ...options,
    duplicates: "process" as const,
    finish: { delivered: leave, quarantined: leave, unmatched: leave, duplicate: leave, guard: 0 },
    // The account sees what becomes of its files.
    expectUnmatched: "all" as const,
  }));

/** The settings for compressed files of a drop. */
export function unpackingOf(drop: DropOptions) {
  return { ...drop.archives, names: "names" in drop ? drop.names : "utf-8" } as const;
}

/**
 * The address of a drop, by which gateways know it as the same whatever its name in their configurations. Null for an
 * intake, whose senders number their bodies.
 */
export function addressOf(drop: DropOptions): string | null {
  switch (drop.kind) {
    case "local":
      return withoutSlash(`file://${drop.path}`);
    case "sftp":
      return serverAddress(drop, drop.port);
    case "ftp":
      return serverAddress(drop, drop.port ?? (drop.tls === "implicit" ? 990 : 21));
    case "hub":
      return "hub:";
    case "http":
      return null;
  }
}

/** A relative path begins where the login leads. */
function serverAddress(
  drop: { readonly kind: string; readonly host: string; readonly path: string; readonly username: string },
  port: number,
): string {
  const host = `${drop.host.toLowerCase()}:${port}`;
  const path = posix.normalize(drop.path);
  const at = path.startsWith("/") ? `${host}${path}` : `${encodeURIComponent(drop.username)}@${host}/${path}`;
  return withoutSlash(`${drop.kind}://${at}`);
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, "");
}

export type LocalOptions = z.output<typeof localOptions>;
export type SftpOptions = z.output<typeof sftpOptions>;
export type FtpOptions = z.output<typeof ftpOptions>;
export type IntakeOptions = z.output<typeof intakeOptions>;
export type HubDropOptions = z.output<typeof hubDropOptions>;
export type DropOptions = z.output<typeof dropOptions> | HubDropOptions;
