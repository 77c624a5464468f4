/** What every real server gives to its tests, and fields on it for the conformance suite. */
import { chmod, chown, mkdir, mkdtemp, realpath, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { silentLog } from "#core/log.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import { createFtpDrop } from "#gateway/drops/ftp/ftp.ts";
import { type DropOptions, dropOptions } from "#gateway/drops/options.ts";
import { createSftpDrop } from "#gateway/drops/sftp/sftp.ts";
import type { Field, OpenField, Settings } from "../drops/field.ts";
import type { Person } from "./people.ts";
import { type ServerCommand, startServer } from "./server-process.ts";

export interface RealServer {
  /** The folder of this machine that the server shows. */
  readonly shows: string;
  /** Where the user of the server sees that folder. */
  readonly seenAs: string;
  /** Whose files they are. */
  readonly owner: Person;
  /** How a drop connects, without its path. */
  readonly settings: Settings;
  stop(): Promise<void>;
  /** Again, on the same port, after `stop`. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A folder that only root may write to and everybody may enter. */
export async function makeGround(parent = tmpdir()): Promise<string> {
  const ground = await realpath(await mkdtemp(join(parent, "headgate-")));
  await chmod(ground, 0o755);
  return ground;
}

export interface ServerPlan extends Pick<RealServer, "shows" | "seenAs" | "owner"> {
  /** Removed at the end. */
  readonly ground: string;
  command(port: number): Promise<ServerCommand>;
  settings(port: number): Settings;
  clean?(): Promise<void>;
}

export async function startReal(plan: ServerPlan): Promise<RealServer> {
  const { shows, seenAs, owner, ground } = plan;
  const clean = async () => {
    await plan.clean?.();
    await rm(ground, { recursive: true, force: true });
  };
  try {
    let server = await startServer(plan.command);
    const { port } = server;
    return {
      shows,
      seenAs,
      owner,
      settings: {
        host: "127.0.0.1",
        port,
        username: owner.username,
        password: owner.password,
        ...plan.settings(port),
      },
      stop: () => server.stop(),
      restart: async () => {
        server = await startServer(plan.command, port);
      },
      close: async () => {
        await server.stop();
        await clean();
      },
    };
  } catch (thrown) {
    await clean();
    throw thrown;
  }
}

/** Each field is a folder of its own at the one server. */
export function fieldsAt(server: () => RealServer, more: Settings = {}): OpenField {
  return async (settings = {}) => {
    const { shows, seenAs, owner } = server();
    const outside = await makeGround();
    const root = await mkdtemp(join(shows, "field-"));
    await chown(root, owner.uid, owner.gid);
    const path = `${seenAs}/${relative(shows, root)}`.replace("//", "/");
    const options = dropOptions.parse({ name: "field", ...server().settings, path, ...more, ...settings });
    const drop = dropOf(options);
    return {
      drop,
      options,
      root,
      outside,
      faults: null,
      connections: () => 0,
      async write(file, content, time) {
        await write(root, owner, file, content, time);
        return file;
      },
      remove: (file) => rm(join(root, file)),
      manyFiles: 1_200,
      async close() {
        await drop.close();
        await rm(root, { recursive: true, force: true });
        await rm(outside, { recursive: true, force: true });
      },
    } satisfies Field;
  };
}

export function dropOf(options: DropOptions): Drop {
  if (options.kind === "sftp") return createSftpDrop(options, silentLog);
  if (options.kind === "ftp") return createFtpDrop(options, silentLog);
  throw new Error(`no real server speaks to a drop of kind ${options.kind}`);
}

async function write(
  root: string,
  owner: Person,
  path: string,
  content: string | Uint8Array,
  time?: Date,
): Promise<void> {
  let folder = root;
  for (const part of dirname(path) === "." ? [] : dirname(path).split(sep)) {
    folder = join(folder, part);
    await mkdir(folder, { recursive: true });
    await chown(folder, owner.uid, owner.gid);
  }
  await writeFile(join(root, path), content);
  await chown(join(root, path), owner.uid, owner.gid);
  if (time !== undefined) await utimes(join(root, path), time, time);
}
