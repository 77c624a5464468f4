/** Settings of the file-transfer server: `transfer` of `hub.yaml`. */
import { z } from "zod";
import { duration, size } from "#core/quantities.ts";

const listenAddress = z.string().regex(/^(\[[^\]]+\]|[^:[\]]+):\d{1,5}$/, "expected host:port");

const sftp = z.strictObject({
  listen: listenAddress
    .describe("Address and port of the SFTP server; port 0 takes any free one.")
    .meta({ examples: ["0.0.0.0:2022"] }),
  hostKeys: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe(
      "Files of the private host keys (OpenSSH or PEM, without a passphrase), one for each type. When absent, an " +
        "Ed25519 and an RSA key are made at the first start, and kept in `transfer.path`.",
    )
    .meta({ examples: [["/etc/headgate/ssh_host_ed25519_key"]] }),
});

const ftp = z.strictObject({
  listen: listenAddress
    .describe("Address and port of the FTP server; port 0 takes any free one.")
    .meta({ examples: ["0.0.0.0:2121"] }),
  tls: z
    .strictObject({
      cert: z.string().min(1).describe("File of the certificate with its chain (PEM)."),
      key: z.string().min(1).describe("File of its private key (PEM), without a passphrase."),
      required: z
        .boolean()
        .default(false)
        .describe("Whether clients without TLS are refused; they are not by default, since old loggers have none."),
      listen: listenAddress
        .optional()
        .describe("Address of a listener with TLS from the first byte; none when absent."),
    })
    .optional()
    .describe("Certificate of the server; clients ask for TLS by AUTH TLS. There is no TLS when absent."),
  passivePorts: z
    .string()
    .regex(/^\d{4,5}-\d{4,5}$/, "expected a range of ports such as 50000-50100")
    .refine((range) => {
      const [first = 0, last = 0] = range.split("-").map(Number);
      return first >= 1_024 && first <= last && last <= 65_535;
    }, "expected ports from 1024 to 65535, the lower one first")
    .optional()
    .describe("Ports for the data of clients, to be opened in a firewall; any free ones when absent.")
    .meta({ examples: ["50000-50100"] }),
  publicAddress: z
    .ipv4()
    .optional()
    .describe("Address that PASV reports, behind an address translation; that of the connection when absent.")
    .meta({ examples: ["203.0.113.7"] }),
});

const tunables = {
  temporaryNames: z
    .array(z.string().regex(/^(\*[^*/]+|[^*/]+\*)$/, "expected an ending such as *.part, or a beginning such as .in.*"))
    .default(["*.part", "*.partial", "*.tmp", "*.temp", "*.filepart", "*.uploading", ".in.*"])
    .describe(
      "Names under which a file is no more than an upload, also when it was closed: it is taken when it gets " +
        "another name. Endings and beginnings, in any case. *.part, *.partial, *.tmp, *.temp, *.filepart, " +
        "*.uploading and .in.* by default.",
    ),
  repeats: duration("1h").describe(
    "How long the same file counts as sent again by a sender that did not get the answer. It is stored once then, " +
      "and `repeatedDate` of its record says so. 1h by default; 0s: never.",
  ),
  keepUnfinished: duration("3d").describe(
    "How long an upload that broke off can be continued before it is removed; 3d by default.",
  ),
  unfinishedBytes: size("4GB").describe("Bytes of the unfinished uploads of one account; 4GB by default."),
  entries: z
    .int()
    .positive()
    .default(10_000)
    .describe("Folders and unfinished uploads of one account; 10000 by default."),
  keepListed: duration("1d").describe(
    "How long a file that was taken stays visible in the sender's folder; 1d by default.",
  ),
  listed: z
    .int()
    .positive()
    .default(20_000)
    .describe("Taken files that the folder of one account shows; the oldest go first. 20000 by default."),
  keepFolders: duration("400d").describe("How long an empty folder stays; 400d by default."),
  connections: z
    .int()
    .positive()
    .default(200)
    .describe("Connections at one time; further ones are closed at once, and the log says so. 200 by default."),
  connectionsPerAddress: z.int().positive().default(50).describe("… from one address; 50 by default."),
  connectionsPerAccount: z
    .int()
    .positive()
    .default(50)
    .describe(
      "… of the users of one account, and never more than half of `connections`; further ones are ended after the " +
        "sign-in. A user of several accounts is let in while one of them has fewer. 50 by default.",
    ),
  attempts: z
    .int()
    .positive()
    .default(6)
    .describe(
      "Wrong passwords and unknown keys of one connection before it is ended; `tokenThrottle` counts wrong " +
        "passwords beside that. 6 by default.",
    ),
  signIn: duration("30s").describe("How long a connection may take to sign in; 30s by default."),
  idle: duration("10m").describe("How long a connection may stay without a request; 10m by default."),
  stalled: duration("60s").describe("How long a transfer may stay without a byte; 60s by default."),
};

export const transferOptions = z.strictObject({
  path: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder of the unfinished uploads, made when absent, of this hub alone; `<store.path>.transfer` by default. " +
        "With a PostgreSQL store it has to be given.",
    )
    .meta({ examples: ["data/transfer"] }),
  sftp: sftp.optional().describe("The SFTP server; there is none when absent."),
  ftp: ftp.optional().describe("The FTP server; there is none when absent."),
  ...tunables,
});

export type FtpOptions = z.output<typeof ftp>;
export type TransferOptions = z.output<typeof transferOptions>;

/** An entry of `users[].sshKeys`. */
export const sshKey = z
  .string()
  .regex(/^\S+ [A-Za-z0-9+/=]+( .*)?$/, "expected a public key as one line, such as: ssh-ed25519 AAAA… comment");
