/** Configuration of a drop, a discriminated union by `kind`. */
import { posix } from "node:path";
import { Cron } from "croner";
import { z } from "zod";
import { duration, size } from "#core/quantities.ts";
import { intakeShape } from "./intake/options.ts";

/** Names that a sender gives to a file while it writes it. */
export const TEMPORARY_NAMES_DEFAULT = ["*.part", "*.tmp", "*.filepart", "*~", ".*"];

const relativeFolder = z
  .string()
  .min(1)
  .refine(
    (folder) =>
      !/^[/\\]|^[A-Za-z]:|[\0\r\n\\]/.test(folder) &&
      folder.split("/").every((part) => part !== "" && part !== "." && part !== ".."),
    "expected a folder inside the drop, such as archive or done/2026",
  );

const finishRule = z
  .union([
    z.literal("leave"),
    z.literal("delete"),
    z.strictObject({
      archive: relativeFolder.describe("Folder inside the drop; created when missing, never listed."),
      keep: duration()
        .optional()
        .describe(
          "Archived files are deleted this long after they were picked up, by the time in their new name; " +
            "other files in the folder are left alone. Never when absent.",
        )
        .meta({ examples: ["90d"] }),
    }),
  ])
  .transform((rule) =>
    typeof rule === "string" ? { action: rule } : { action: "archive" as const, to: rule.archive, keep: rule.keep },
  );

const settle = z
  .strictObject({
    observations: z
      .int()
      .min(1)
      .max(100)
      .default(4)
      .describe("Equal observations of size and time before a file is picked up; with 1, at first sight. Default 4."),
    interval: duration("10s").describe(
      "Least time between two observations that count, by the gateway's own clock. With the defaults a file is " +
        "picked up once it has not changed for 30 s; a file that grew after a longer pause must stay unchanged for " +
        "twice that pause. `headgate check` suggests a value from the pauses that the drop has shown. Default 10s.",
    ),
    doneFile: z
      .string()
      .regex(
        /^[^/\\]*\{(name|stem)\}[^/\\]*$/,
        "expected {name} or {stem} and something beside it, such as {name}.done",
      )
      .refine((template) => !/^\{(name|stem)\}$/.test(template), "expected something beside {name} or {stem}")
      .optional()
      .describe(
        "Name of a second file in the same folder that the sender writes when a file is complete; {name} stands for " +
          "the file's name, {stem} for the name without its extension. A file is not picked up before its done-file " +
          "exists, nor before it has settled, since the done-file may be an old one.",
      )
      .meta({ examples: ["{name}.done"] }),
    limit: duration("1h").describe(
      "A file that has not settled by then is reported, once, and continues to wait. Default 1h.",
    ),
  })
  .prefault({});

const finish = z
  .strictObject({
    delivered: finishRule
      .prefault({ archive: "archive" })
      .describe("What happens to a source file whose batches were all accepted. Default: archive."),
    quarantined: finishRule.prefault("leave").describe("… to a file in quarantine. Default leave."),
    unmatched: finishRule.prefault("leave").describe("… to a file that no trigger claims. Default leave."),
    duplicate: finishRule.prefault("leave").describe("… to a file that was delivered before. Default leave."),
    guard: duration("1h").describe(
      "How long a file is watched after it was archived or marked for deletion. When it grows or changes " +
        "meanwhile, its whole content is processed again under its original path, with a warning. Until then an " +
        "archive on another volume is not written, and no file is deleted: the file waits in its folder under " +
        "another name. 0s finishes at once and watches no file. Default 1h.",
    ),
  })
  .prefault({});

const archives = z
  .strictObject({
    unpack: z
      .boolean()
      .default(true)
      .describe(
        "Whether files named .zip and .gz are opened, and each file in them is processed by its own name. " +
          "Otherwise they are files like others. Default true.",
      ),
    entriesMax: z.int().min(1).max(1_000_000).default(10_000).describe("Most entries of one. Default 10000."),
    sizeMax: size("2GB").describe("Most bytes of all entries of one, unpacked. Default 2GB."),
    ratioMax: z
      .number()
      .min(1)
      .default(200)
      .describe(
        "Most bytes, unpacked, for each byte of one; it does not apply to those that unpack to less than 4 MB. " +
          "Default 200.",
      ),
    depthMax: z
      .int()
      .min(1)
      .max(10)
      .default(1)
      .describe("How deep they may be nested; 1 opens none inside another. Default 1."),
    ignore: z
      .array(z.string().min(1))
      .default(["__MACOSX/**", "__MACOSX/**/.*", "**/.DS_Store", "**/Thumbs.db"])
      .describe(
        "Patterns of entries that are left out, such as those that a Mac adds; only a dot matches a leading dot.",
      ),
  })
  .prefault({});

const pickupOrder = z.enum(["modified", "name"]);
const ORDER_WAIT = "10m";

const order = z
  .union([
    pickupOrder.transform((by) => ({ by })),
    z.strictObject({ by: pickupOrder.default("modified"), wait: duration(ORDER_WAIT) }),
  ])
  .prefault("modified")
  .transform((rule) => ({ wait: duration(ORDER_WAIT).parse(undefined), ...rule }));

const common = {
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "expected letters, digits, dot, hyphen or underscore")
    .describe("Name of the drop, as the ledger, the log and the metrics show it. Do not change it later.")
    .meta({ examples: ["meters"] }),
  every: duration("10s").describe(
    "Time between two polls; up to three times as long in a local folder of very many files, where " +
      "file-system events arrive. Default 10s.",
  ),
  cron: z
    .string()
    .refine(isCron, "expected a cron expression such as */15 6-20 * * mon-fri")
    .optional()
    .describe(
      "Polls by the calendar instead of `every`: five fields, or six with seconds first. The gateway also polls " +
        "when it starts, and while files settle; file-system events are not used.",
    )
    .meta({ examples: ["0 6 * * *"] }),
  timeZone: z
    .string()
    .refine(isTimeZone, "expected a time zone such as Europe/Brussels")
    .default("UTC")
    .describe("Time zone of `cron`. Default UTC."),
  jitter: duration("0s").describe(
    "Each poll is delayed by a random time up to this, so that many gateways do not call a server at once. " +
      "Default 0s.",
  ),
  backoffMax: duration("5m").describe(
    "Longest time between two polls of a drop that cannot be reached; the time doubles up to it. Default 5m.",
  ),
  settle: settle.describe("When a file counts as complete."),
  temporaryNames: z
    .array(z.string().min(1))
    .default(TEMPORARY_NAMES_DEFAULT)
    .describe("Patterns of file names that are still being written; such a file waits until it is renamed."),
  include: z
    .array(z.string().min(1))
    .default([])
    .describe("Patterns of paths to pick up, relative to the drop; all when empty.")
    .meta({ examples: [["**/*.csv"]] }),
  exclude: z
    .array(z.string().min(1))
    .default([])
    .describe("Patterns of paths to ignore, relative to the drop.")
    .meta({ examples: [["old/**"]] }),
  expectUnmatched: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Patterns of paths that may lie at the drop although no trigger claims them; they stay there, whatever " +
        "`finish.unmatched` says. Every other unmatched file needs attention: it is in the log, in health, in " +
        "`headgate quarantine`, in the metrics, and sent to the receivers of `notifications`.",
    )
    .meta({ examples: [["README*", "**/*.log"]] }),
  archives: archives.describe("How compressed files are opened. One beyond a limit is quarantined as a whole."),
  depthMax: z
    .int()
    .min(1)
    .max(1_000)
    .default(30)
    .describe(
      "How many folders deep the drop is searched. Deeper folders make the poll fail with their name, while the " +
        "files above them are still picked up: a link that leads back into itself has no end. Default 30.",
    ),
  recursive: z.boolean().default(true).describe("Whether subfolders are searched. Default true."),
  finish: finish.describe("What happens to source files, by how they ended."),
  initial: z
    .union([
      z.enum(["process", "skip"]),
      z.strictObject({
        since: z
          .union([z.iso.date(), z.iso.datetime({ offset: true })])
          .describe("Files changed since are processed, by the server's clock; a date begins at midnight UTC.")
          .meta({ examples: ["2026-01-01"] }),
      }),
    ])
    .default("process")
    .transform((rule) => (typeof rule === "string" ? rule : { sinceMs: Date.parse(rule.since) }))
    .describe(
      "What happens to files that are there at the first contact with this ledger: processed, skipped, or " +
        "processed since a date. A file whose full date the server does not report is processed. A skipped file " +
        "that changes later is processed. Default process.",
    ),
  duplicates: z
    .enum(["skip", "process", "flag"])
    .default("skip")
    .describe(
      "What happens to bytes that came before at the same path and were delivered or are in progress: left " +
        "alone, processed again, or processed again with a note in the file's trace. Default skip.",
    ),
  order: order.describe(
    "Which file comes first: the one that changed first, or the first by name, numbers in it by their value. " +
      "Entries of an archive take its place, and are ordered among themselves by their own times or names. " +
      "`{ by: modified, wait: 10m }` also defines how long later files wait for a file of their lane that was " +
      "seen earlier, has not settled, and is missing from one listing or in a folder that cannot be listed; the " +
      "wait happens once for each such file, and then the later files continue with a warning. The files of a " +
      "folder whose listing broke off wait as long for a complete one. Where triggers " +
      "share a named `lane`, files at the other drops of that lane wait as well, for their own `wait`. " +
      "Default modified, and 10m.",
  ),
  perPollMax: z
    .int()
    .min(1)
    .default(10_000)
    .describe("Most files picked up in one poll, the first ones by `order`. Default 10000."),
  maxFileSize: size("2GB").describe("Larger files are refused and quarantined. Default 2GB."),
};

const names = z
  .enum(["utf-8", "latin-1"])
  .default("utf-8")
  .describe(
    "Encoding of file names at the drop. A file whose name is not in it is recorded, and quarantined with that " +
      "reason. Names in a ZIP archive are UTF-8 where the archive declares it; others are read as latin-1 where " +
      "this setting is latin-1, otherwise as UTF-8 when their bytes are valid, and as code page 437 when not. " +
      "Default utf-8.",
  );

const timeouts = z
  .strictObject({
    connect: duration("20s").describe("Longest time to connect and log in. Default 20s."),
    data: duration("30s").describe("Longest silence while a response or data is awaited. Default 30s."),
    idle: duration("60s").describe("Connections unused for this long are closed. Default 60s."),
  })
  .prefault({});

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

// Settings that every kind of drop has.

function isCron(text: string): boolean {
  try {
    new Cron(text, { paused: true }).stop();
    return true;
  } catch {
    return false; // The constructor throws for an invalid expression.
  }
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false; // The constructor throws for an unknown name.
  }
}
