/** Commands of FTP about files and folders, which need no data connection. */
import type { Connection } from "./connections.ts";
import { absolute, type Entry, type FileTree, noSuchFile, TreeFault } from "./file-tree.ts";
import type { FtpControl } from "./ftp-control.ts";

export type Command = (argument: string) => Promise<void> | void;

/** Where a signed-in client is. */
export class FtpFolder {
  readonly tree: FileTree;
  readonly #control: FtpControl;
  readonly #connection: Connection;
  #folder = "/";
  #renameFrom: string | null = null;

  constructor(tree: FileTree, control: FtpControl, connection: Connection) {
    this.tree = tree;
    this.#control = control;
    this.#connection = connection;
  }

  at(path: string): string {
    return absolute(path, this.#folder);
  }

  commands(): Record<string, Command> {
    return {
      PWD: () => this.#control.reply(257, `"${this.#folder.replaceAll('"', '""')}"`),
      CWD: (path) => this.#enterFolder(path),
      CDUP: () => this.#enterFolder(".."),
      SIZE: async (path) => this.#control.reply(213, String((await this.#file(path)).size)),
      MDTM: async (path) => this.#control.reply(213, stamp((await this.#file(path)).modifiedMs)),
      MLST: async (path) => {
        const entry = await this.tree.stat(this.at(path));
        this.#control.replyLines(250, "facts", [`${factsOf(entry)} ${this.at(path)}`], "end");
      },
      MFMT: async (argument) => {
        const [, time = "", path = ""] = /^(\d{14})(?:\.\d+)? (.+)$/s.exec(argument) ?? [];
        const ms = Date.parse(time.replace(/^(....)(..)(..)(..)(..)(..)$/, "$1-$2-$3T$4:$5:$6Z"));
        if (Number.isNaN(ms)) return this.#control.reply(501, "expected YYYYMMDDHHMMSS and a path");
        await this.tree.setModified(this.at(path), ms);
        this.#control.reply(213, `Modify=${time}; ${path}`);
      },
      RNFR: async (path) => {
        await this.tree.stat(this.at(path));
        this.#renameFrom = this.at(path);
        this.#control.reply(350, "send RNTO");
      },
      RNTO: async (path) => {
        const from = this.#renameFrom;
        this.#renameFrom = null;
        if (from === null) return this.#control.reply(503, "send RNFR first");
        await this.#connection.work(() => this.tree.rename(from, this.at(path)));
        this.#control.reply(250, "renamed");
      },
      DELE: async (path) => {
        await this.tree.remove(this.at(path));
        this.#control.reply(250, "removed");
      },
      MKD: async (path) => {
        await this.tree.makeFolder(this.at(path));
        this.#control.reply(257, `"${this.at(path).replaceAll('"', '""')}" made`);
      },
      RMD: async (path) => {
        await this.tree.removeFolder(this.at(path));
        this.#control.reply(250, "removed");
      },
    };
  }

  async #enterFolder(path: string): Promise<void> {
    const folder = this.at(path);
    if ((await this.tree.stat(folder)).kind !== "folder") throw new TreeFault("failed", "is no folder");
    this.#folder = folder;
    this.#control.reply(250, "done");
  }

  async #file(path: string): Promise<Entry> {
    const entry = await this.tree.stat(this.at(path));
    if (entry.kind !== "file") throw noSuchFile();
    return entry;
  }
}

const TYPES = { file: "file", folder: "dir", link: "OS.unix=symlink" } as const;

export function factsOf({ kind, size, modifiedMs }: Entry): string {
  return `type=${TYPES[kind]};size=${size};modify=${stamp(modifiedMs)};`;
}

/** `20260301001500`, in UTC. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:TZ]|\..*/g, "");
}
