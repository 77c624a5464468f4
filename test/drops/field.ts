/** A real drop of each kind over a folder of this machine, for the conformance suite. */
import { mkdir, mkdtemp, realpath, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startField } from "#app/cli/demo/field.ts";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import { type DropOptions, dropOptions } from "#gateway/drops/options.ts";
import type { FileEntry } from "#gateway/model.ts";
import { freshHostKey } from "#hub/transfer/host-keys.ts";
import { FieldFaults } from "../support/field/faults.ts";
import { startFieldFtp } from "../support/field/ftp.ts";
import { type FieldSftpOptions, startFieldSftp } from "../support/field/sftp.ts";

/** Options as a configuration file has them. */
export type Settings = Readonly<Record<string, unknown>>;

export interface Field {
  readonly drop: Drop;
  readonly options: DropOptions;
  /** The folder that the drop shows. */
  readonly root: string;
  /** A folder of this test, outside of the drop. */
  readonly outside: string;
  /** Null where no server is in between. */
  readonly faults: FieldFaults | null;
  /** Connections that the server has now. */
  connections(): number;
  /** Channels on them, and handles that the drop has open there. */
  channels?(): number;
  /** Answers the path at which the drop has it then. */
  write(path: string, content: string | Uint8Array, time?: Date): Promise<string>;
  remove(path: string): Promise<void>;
  /** More files than it lists at once. */
  readonly manyFiles: number;
  close(): Promise<void>;
}

export type OpenField = (settings?: Settings) => Promise<Field>;

const user = { username: "meter", password: "open sesame" };

export const openLocal: OpenField = (settings = {}) =>
  openField(async (root) => ({ options: { kind: "local", path: root, ...settings } }));

export const sftpOf =
  (server: Partial<FieldSftpOptions>): OpenField =>
  (settings = {}) =>
    openField(async (root) => {
      const faults = new FieldFaults();
      const started = await startFieldSftp({ root, ...user, ...server, hooks: faults.hooks });
      const { host, port, hostKeyFingerprint } = started;
      return {
        server: { ...started, faults },
        options: { kind: "sftp", host, port, ...user, hostKeys: [hostKeyFingerprint], ...settings },
      };
    });

export const openSftp: OpenField = sftpOf({});

export const openFtp =
  (listing: "auto" | "list", server: Settings = {}): OpenField =>
  (settings = {}) =>
    openField(async (root) => {
      const faults = new FieldFaults();
      const machineListing = listing === "auto";
      const started = await startFieldFtp({ root, ...user, machineListing, ...server, hooks: faults.hooks });
      const { host, port } = started;
      return { server: { ...started, faults }, options: { kind: "ftp", host, port, ...user, ...settings } };
    });

/** The server of the hub, over the folder, as the demo starts it. */
export const openServed =
  (kind: "sftp" | "ftp"): OpenField =>
  (settings = {}) =>
    openField(async (root) => {
      const hostKey = freshHostKey("ed25519");
      const { sftpPort, ftpPort, hostKeyFingerprint, close } = await startField(
        [{ ...user, folder: root }],
        hostKey,
        silentLog,
      );
      const access = kind === "sftp" ? { port: sftpPort, hostKeys: [hostKeyFingerprint] } : { port: ftpPort };
      return {
        server: { faults: null, connections: () => 0, close },
        options: { kind, host: "127.0.0.1", ...access, ...user, ...settings },
      };
    });

type Started = {
  readonly options: Settings;
  readonly server?: {
    readonly faults: FieldFaults | null;
    connections(): number;
    channels?(): number;
    close(): Promise<void>;
  };
};

async function openField(start: (root: string) => Promise<Started>): Promise<Field> {
  const ground = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
  const root = join(ground, "drop");
  await mkdir(root);
  const { options: written, server } = await start(root);
  const options = dropOptions.parse({ name: "field", ...written });
  const drop = await createDrop(options, { log: silentLog });
  return {
    drop,
    options,
    root,
    outside: ground,
    faults: server?.faults ?? null,
    connections: () => server?.connections() ?? 0,
    channels: () => server?.channels?.() ?? 0,
    async write(path, content, time) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
      if (time !== undefined) await utimes(join(root, path), time, time);
      return path;
    },
    remove: (path) => rm(join(root, path)),
    manyFiles: 1_200,
    async close() {
      await drop.close();
      await server?.close();
      await rm(ground, { recursive: true, force: true });
    },
  };
}

export const never = new AbortController().signal;

export async function listed(drop: Drop): Promise<FileEntry[]> {
  const entries = (await Array.fromAsync(drop.list(never))).flat();
  return entries.sort((one, other) => (one.path < other.path ? -1 : 1));
}

export async function entryAt(drop: Drop, path: string): Promise<FileEntry> {
  const entry = await drop.stat(path, never);
  if (entry === null) throw new Error(`${path} does not lie at the drop`);
  return entry;
}
