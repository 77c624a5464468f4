/**
 * A small file system that one daemon sees at a folder: a tmpfs in a mount namespace of its own. Only root
 * may make one.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";

const run = promisify(execFile);
/** The user of the daemon: one whom modes mean something to. */
export const NOBODY = 65_534;

export class SmallDisk {
  readonly folder: string;
  readonly #holder: ChildProcess;

  private constructor(folder: string, holder: ChildProcess) {
    this.folder = folder;
    this.#holder = holder;
  }

  static async mount(folder: string, bytes: number, owner: number | null = null): Promise<SmallDisk> {
    await mkdir(folder, { recursive: true });
    const rights = owner === null ? "mode=777" : `mode=700,uid=${owner},gid=${owner}`;
    const script = `mount -t tmpfs -o size=${bytes},${rights} tmpfs "$0" && echo mounted && exec sleep infinity`;
    const holder = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", script, folder], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const disk = new SmallDisk(folder, holder);
    const said = await Promise.race([once(holder.stdout, "data"), once(holder, "close").then(() => null)]);
    if (said === null) throw new Error("no file system can be mounted here");
    return disk;
  }

  static async isPossible(): Promise<boolean> {
    const folder = await mkdtemp(join(tmpdir(), "headgate-"));
    try {
      await (await SmallDisk.mount(folder, 65_536)).close();
      return process.getuid?.() === 0;
    } catch {
      return false; // Not root, or in a container without the right to.
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  /** In front of a command that is to see it, and to run as nobody. */
  get through(): readonly string[] {
    return ["nsenter", "-t", `${this.#holder.pid}`, "-m", "-S", `${NOBODY}`, "-G", `${NOBODY}`];
  }

  /** Where this process sees what lies on it. */
  at(path: string): string {
    return join(`/proc/${this.#holder.pid}/root${this.folder}`, path);
  }

  async resize(bytes: number): Promise<void> {
    const remount = ["mount", "-o", `remount,size=${bytes}`, this.folder];
    await run("nsenter", ["-t", `${this.#holder.pid}`, "-m", ...remount]);
  }

  /** Proves that so many bytes have no room, and takes them away again. */
  async expectNoRoomFor(bytes: number): Promise<void> {
    const proof = this.at("proof");
    await expect(writeFile(proof, Buffer.alloc(bytes))).rejects.toMatchObject({ code: "ENOSPC" });
    await rm(proof);
  }

  /** Leaves no byte free until the file is removed that it names. */
  async fill(): Promise<string> {
    const filler = this.at("filler");
    const chunk = Buffer.alloc(4_096);
    const fillOn = async () => {
      for (;;) await writeFile(filler, chunk, { flag: "a" });
    };
    await expect(fillOn()).rejects.toMatchObject({ code: "ENOSPC" });
    return filler;
  }

  async close(): Promise<void> {
    if (this.#holder.exitCode !== null || this.#holder.signalCode !== null) return;
    const closed = once(this.#holder, "close");
    this.#holder.kill("SIGKILL");
    await closed;
  }
}
