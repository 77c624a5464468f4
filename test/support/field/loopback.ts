import type { AddressInfo, Server } from "node:net";

/** A server of a test that listens on loopback. */
export interface Loopback {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

/** `port`: any free one when 0 or absent. `cut` ends the connections, for which a closed server waits. */
export async function listenOnLoopback(server: Server, port: number | undefined, cut: () => void): Promise<Loopback> {
  const host = "127.0.0.1";
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port ?? 0, host, resolve);
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      cut();
    });
  return { host, port: (server.address() as AddressInfo).port, close };
}
