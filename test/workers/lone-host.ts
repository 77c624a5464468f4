/** A mapping host without a `MappingHost`: for starts that the product does not make on this machine. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { join } from "node:path";
import { Channel, sendSecret } from "#mapping/workers/channel.ts";
import type { FromHost, HostStart, ToHost } from "#mapping/workers/messages.ts";

const MODULE = join(import.meta.dirname, "../../src/mapping/workers/host-main.ts");

export interface LoneHost {
  readonly child: ChildProcess;
  send(message: ToHost): void;
  /** The first message of a kind. */
  first(kind: FromHost["kind"]): Promise<FromHost>;
}

export function startLoneHost(
  start: HostStart,
  { flags = [], ...options }: { readonly flags?: readonly string[] } & Pick<SpawnOptions, "env"> = {},
): LoneHost {
  const child = spawn(process.execPath, [...flags, MODULE, JSON.stringify(start)], {
    ...options,
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const socket = child.stdio[3] as Socket;
  socket.on("error", () => undefined);
  const received: FromHost[] = [];
  const waits = new Map<FromHost["kind"], (message: FromHost) => void>();
  const keys = { secret: sendSecret(socket), side: "gateway" } as const;
  const channel = new Channel<ToHost, FromHost>(
    socket,
    keys,
    (message) => {
      received.push(message);
      waits.get(message.kind)?.(message);
    },
    () => child.kill("SIGKILL"),
  );
  return {
    child,
    send: (message) => channel.send(message),
    first: async (kind) =>
      received.find((one) => one.kind === kind) ?? new Promise((resolve) => waits.set(kind, resolve)),
  };
}
