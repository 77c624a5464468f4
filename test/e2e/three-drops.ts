/** A stage with a drop of each kind, or of some; the field servers run in the test process. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { FieldFaults } from "../support/field/faults.ts";
import { startFieldFtp } from "../support/field/ftp.ts";
import { startFieldSftp } from "../support/field/sftp.ts";
import { localDrop, type Rig, type Settings, type Stage } from "./rig.ts";

export const KINDS = ["local", "sftp", "ftp"] as const;
export type Kind = (typeof KINDS)[number];

export interface Drops {
  readonly stage: Stage;
  readonly folders: Readonly<Record<Kind, string>>;
  close(): Promise<void>;
}

export interface ThreeDrops extends Drops {
  readonly sftpFaults: FieldFaults;
}

const user = { username: "meter", password: "open sesame" };
const common = { every: "200ms", settle: { observations: 1 }, ...user };

/** The drops are named as their kinds. */
export async function layThreeDrops(rig: Rig, name: string, change: Settings = {}): Promise<ThreeDrops> {
  const stage = await rig.stage(name);
  const folders = await layFolders(stage);
  const sftp = await startSftp(folders.sftp);
  const ftp = await startFtp(folders.ftp);
  await stage.configure({ drops: [{ ...localDrop, name: "local" }, sftp.drop, ftp.drop], ...change });
  return {
    stage,
    folders,
    sftpFaults: sftp.faults,
    close: async () => {
      await sftp.close();
      await ftp.close();
    },
  };
}

/** A stage with one drop. */
export async function layOneDrop(rig: Rig, name: string, kind: Kind, change: Settings = {}): Promise<Drops> {
  const stage = await rig.stage(name);
  const folders = await layFolders(stage);
  const field = await FIELDS[kind](folders[kind]);
  await stage.configure({ drops: [field.drop], ...change });
  return { stage, folders, close: field.close };
}

const FIELDS = {
  local: async () => ({ drop: { ...localDrop, name: "local" }, close: async () => {} }),
  sftp: startSftp,
  ftp: startFtp,
} as const;

async function layFolders(stage: Stage): Promise<Record<Kind, string>> {
  const folders = { local: stage.drop, sftp: join(stage.folder, "sftp"), ftp: join(stage.folder, "ftp") };
  for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true });
  return folders;
}

async function startSftp(root: string) {
  const faults = new FieldFaults();
  const server = await startFieldSftp({ root, ...user, hooks: faults.hooks });
  const { host, port, hostKeyFingerprint, close } = server;
  const drop = { ...common, name: "sftp", kind: "sftp", host, port, hostKeys: [hostKeyFingerprint] };
  return { drop, faults, close };
}

async function startFtp(root: string) {
  const { host, port, close } = await startFieldFtp({ root, ...user });
  return { drop: { ...common, name: "ftp", kind: "ftp", host, port }, close };
}
