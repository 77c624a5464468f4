/** A client of the FTP server that writes its commands by hand. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "vitest";

export interface RawFtp {
  readonly socket: Socket;
  /** Waits for a reply with this code; returns what was received. */
  say(line: string, code: string): Promise<string>;
  until(code: string): Promise<unknown>;
  received(): string;
  /** A data connection, at the port that EPSV names. */
  open(): Promise<Socket>;
  /** A data connection. */
  connect(port: number): Socket;
  close(): void;
}

export async function rawFtp(port: number): Promise<RawFtp> {
  const socket = connect(port, "127.0.0.1");
  const data: Socket[] = [];
  let received = "";
  socket.on("data", (bytes) => {
    received += bytes.toString();
  });
  const until = (code: string) =>
    expect.poll(() => received.split("\r\n").some((line) => line.startsWith(`${code} `)) && received).toBeTruthy();
  const say = async (line: string, code: string) => {
    received = "";
    socket.write(`${line}\r\n`);
    await until(code);
    return received;
  };
  const dataAt = (port: number) => {
    const one = connect(port, "127.0.0.1");
    data.push(one);
    return one;
  };
  await until("220");
  return {
    socket,
    say,
    until,
    received: () => received,
    async open() {
      const one = dataAt(Number(/\|(\d+)\|/.exec(await say("EPSV", "229"))?.[1]));
      await once(one, "connect");
      return one;
    },
    connect: dataAt,
    close() {
      for (const one of [socket, ...data]) one.destroy();
    },
  };
}

/** Signed in as the user who pushes to account 1. */
export async function rawSender(port: number): Promise<RawFtp> {
  const raw = await rawFtp(port);
  await raw.say("USER pusher", "331");
  await raw.say("PASS pusher-password", "230");
  return raw;
}
