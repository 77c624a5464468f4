/** Clients of the file-transfer server, as senders use them. */
import ssh2, { type Client, type ConnectConfig, type SFTPWrapper } from "ssh2";
import type { TestHub } from "../fixture.ts";

export interface SftpSender {
  readonly client: Client;
  readonly sftp: SFTPWrapper;
  put(path: string, content: string | Buffer): Promise<void>;
  names(path?: string): Promise<string[]>;
  stat(path: string): Promise<{ size: number; mtime: number; isFolder: boolean }>;
  call(method: "rename" | "unlink" | "mkdir" | "rmdir", ...paths: string[]): Promise<void>;
  open(path: string, flags: string): Promise<Buffer>;
  write(handle: Buffer, content: string, position: number): Promise<void>;
  close(handle: Buffer): Promise<void>;
  end(): void;
}

export function portOf(address: string | null | undefined): number {
  return Number((address ?? "").split(":").at(-1));
}

export const signIn = (hub: Pick<TestHub, "transfer">, more: ConnectConfig = {}): Promise<Client> => {
  const client = new ssh2.Client();
  const port = portOf(hub.transfer()?.sftp);
  return new Promise((resolve, reject) => {
    client.on("connect", () => client.setNoDelay(true)); // Otherwise each step of the handshake waits for the last.
    client.on("ready", () => resolve(client)).on("error", reject);
    client.on("close", () => reject(new Error("the server closed the connection")));
    client.connect({ host: "127.0.0.1", port, username: "pusher", password: "pusher-password", ...more });
  });
};

export async function sftpSender(hub: Pick<TestHub, "transfer">, more: ConnectConfig = {}): Promise<SftpSender> {
  const client = await signIn(hub, more);
  const sftp = await answered<SFTPWrapper>((done) => client.sftp(done));
  return {
    client,
    sftp,
    put: (path, content) => answered((done) => sftp.writeFile(path, content, done)),
    async names(path = "/") {
      const list = await answered<{ filename: string }[]>((done) => sftp.readdir(path, done));
      return list.map(({ filename }) => filename);
    },
    async stat(path) {
      const status = await answered<ssh2.Stats>((done) => sftp.stat(path, done));
      return { size: status.size, mtime: status.mtime, isFolder: status.isDirectory() };
    },
    call(method, first = "", second = "") {
      if (method === "rename") return answered((done) => sftp.rename(first, second, done));
      return answered((done) => sftp[method](first, done));
    },
    open: (path, flags) => answered((done) => sftp.open(path, flags as "w", done)),
    write: (handle, content, position) =>
      answered((done) => sftp.write(handle, Buffer.from(content), 0, Buffer.byteLength(content), position, done)),
    close: (handle) => answered((done) => sftp.close(handle, done)),
    end: () => void client.end(),
  };
}

function answered<T>(call: (done: (fault: Error | undefined | null, value: T) => void) => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    call((fault, value) => (fault ? reject(fault) : resolve(value)));
  });
}

/** Files of an account as `GET /storage` lists them. */
export async function storedFiles(
  hub: TestHub,
  account = 1,
): Promise<{ fileName: string; via: string; size: number }[]> {
  const files = (await hub.get("/storage", {}, { account })) as { fileName: string; via: string; size: number }[];
  return files.map(({ fileName, via, size }) => ({ fileName, via, size }));
}
