/**
 * The connections of all protocols together: how many there may be, and when one that does nothing is ended. A client
 * that only keeps its connection alive, and asks for nothing, counts as idle.
 */
import type { Socket } from "node:net";
import type { Logger } from "#core/log.ts";
import { createRareWarning } from "#core/rare-warnings.ts";
import { addressKey } from "#core/sign-in/throttle.ts";
import type { TransferOptions } from "./options.ts";

const CHECK_MS_MAX = 5_000;
const CHECKS_PER_LIMIT = 4;

export class Connection {
  readonly address: string;
  readonly socket: Socket;
  readonly sinceMs = performance.now();
  movedMs = performance.now();
  username: string | null = null;
  /** Accounts that the user sends files to; none before the sign-in. */
  accounts: readonly number[] = [];
  /** Files that are being sent or received. */
  transfers = 0;
  /** Requests that wait for the hub itself, such as the take-over of a file. */
  working = 0;
  /** Wrong passwords and unknown keys. */
  failures = 0;

  constructor(socket: Socket) {
    this.socket = socket;
    this.address = socket.remoteAddress ?? "";
  }

  moved(): void {
    this.movedMs = performance.now();
  }

  /** The connection is not ended for want of a request while this runs. */
  async work<T>(task: () => Promise<T>): Promise<T> {
    this.working += 1;
    try {
      return await task();
    } finally {
      this.working -= 1;
      this.moved();
    }
  }
}

export interface Connections {
  /** Null: there are too many, and the socket was closed. */
  admit(socket: Socket): Connection | null;
  /** False: the accounts of the user have too many, and the connection is to be ended. */
  enter(connection: Connection, user: { readonly username: string; readonly accounts: readonly number[] }): boolean;
  count(): number;
  close(): Promise<void>;
}

type Limits = Pick<
  TransferOptions,
  "connections" | "connectionsPerAddress" | "connectionsPerAccount" | "signIn" | "idle" | "stalled"
>;

export function createConnections(limits: Limits, log: Logger): Connections {
  const all = new Set<Connection>();
  const warn = createRareWarning(log, "dropped", "file-transfer connections were closed at once: there are too many");
  const check = () => {
    for (const connection of all) {
      const why = faultOf(connection, limits);
      if (why === null) continue;
      log.info({ from: connection.address, user: connection.username }, why);
      connection.socket.destroy();
    }
  };
  const shortest = Math.min(limits.signIn, limits.idle, limits.stalled) / CHECKS_PER_LIMIT;
  const timer = setInterval(check, Math.min(CHECK_MS_MAX, shortest)).unref();
  return {
    admit(socket) {
      const key = addressKey(socket.remoteAddress ?? "");
      const same = [...all].filter(({ address }) => addressKey(address) === key).length;
      // A client that disconnects is no fault here.
      socket.on("error", () => socket.destroy());
      if (all.size >= limits.connections || same >= limits.connectionsPerAddress) {
        warn({ from: socket.remoteAddress });
        socket.destroy();
        return null;
      }
      const connection = new Connection(socket);
      all.add(connection);
      socket.once("close", () => all.delete(connection));
      return connection;
    },
    enter(connection, { username, accounts }) {
      const most = Math.min(limits.connectionsPerAccount, Math.ceil(limits.connections / 2));
      const heldBy = (account: number) => [...all].filter((one) => one.accounts.includes(account)).length;
      if (accounts.every((account) => heldBy(account) >= most)) {
        warn({ from: connection.address, user: username, why: `its accounts have ${most} connections` });
        return false;
      }
      Object.assign(connection, { username, accounts });
      connection.moved();
      return true;
    },
    count: () => all.size,
    async close() {
      clearInterval(timer);
      const ended = [...all].map(({ socket }) => new Promise((resolve) => socket.once("close", resolve)));
      for (const { socket } of all) socket.destroy();
      await Promise.all(ended);
    },
  };
}

function faultOf(connection: Connection, limits: Limits): string | null {
  const nowMs = performance.now();
  const { username, sinceMs, movedMs, transfers, working } = connection;
  if (username === null)
    return nowMs - sinceMs > limits.signIn ? "a file-transfer connection did not sign in in time" : null;
  if (working > 0) return null;
  if (transfers > 0 && nowMs - movedMs > limits.stalled) return "a file transfer stalled and was cut";
  return transfers === 0 && nowMs - movedMs > limits.idle ? "an idle file-transfer connection was ended" : null;
}
