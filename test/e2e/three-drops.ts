/** A stage with a drop of each kind; the field servers run in the test process. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { startFieldFtp } from "../../src/cli/demo/field-ftp.ts";
import { type FieldFaults, startFieldSftp } from "../../src/cli/demo/field-sftp.ts";
import { localDrop, type Rig, type Settings, type Stage } from "./rig.ts";

export const KINDS = ["local", "sftp", "ftp"] as const;
export type Kind = (typeof KINDS)[number];

export interface ThreeDrops {
  readonly stage: Stage;
  readonly folders: Readonly<Record<Kind, string>>;
  readonly sftpFaults: FieldFaults;
  close(): Promise<void>;
}

const user = { username: "meter", password: "open sesame" };

/** The drops are named as their kinds. */
export async function layThreeDrops(rig: Rig, name: string, change: Settings = {}): Promise<ThreeDrops> {
  const stage = await rig.stage(name);
  const folders = { local: stage.drop, sftp: join(stage.folder, "sftp"), ftp: join(stage.folder, "ftp") };
  for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true });
  const sftp = await startFieldSftp({ root: folders.sftp, ...user });
  const ftp = await startFieldFtp({ root: folders.ftp, ...user });
  const common = { every: "200ms", settle: { observations: 1 }, ...user };
  await stage.configure({
    drops: [
      { ...localDrop, name: "local" },
      {
        ...common,
        name: "sftp",
        kind: "sftp",
        host: sftp.host,
        port: sftp.port,
        hostKeys: [sftp.hostKeyFingerprint],
      },
      { ...common, name: "ftp", kind: "ftp", host: ftp.host, port: ftp.port },
    ],
    ...change,
  });
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
