/** basic-ftp's client, with listings that stream and with passive addresses as the drop's options say. */
import type { Transform } from "node:stream";
import { TLSSocket } from "node:tls";
import { Client, type FTPContext, FTPError } from "basic-ftp";
import {
  connectForPassiveTransfer,
  downloadTo,
  parseEpsvResponse,
  parsePasvResponse,
} from "basic-ftp/dist/transfer.js";
import { bytesOf, type NameEncoding } from "../../support/file-names.ts";
import type { FtpOptions } from "../options.ts";

/** How long the server may take to say why it broke off a transfer. */
const REASON_WAIT_MS = 2_000;

/** How data connections come about. */
export interface DataSeen {
  readonly way: "EPSV" | "PASV";
  /** The address that the server told; null where it tells a port alone. */
  readonly told: string | null;
  /** Where the connection went. */
  readonly used: string;
  /** Whether it took up the TLS session of the control connection; null without TLS, and while that is not known. */
  reused: boolean | null;
  /** Such as `TLSv1.3`; empty without TLS. */
  protocol: string;
}

export class FtpClient extends Client {
  /** Of the last data connection. */
  dataSeen: DataSeen | null = null;
  readonly names: NameEncoding;

  constructor(options: Pick<FtpOptions, "timeouts" | "passive" | "passiveAddress" | "names">) {
    super(options.timeouts.data);
    this.ftp.encoding = options.names === "latin-1" ? "latin1" : "utf8";
    this.names = options.names;
    sendAsNamed(this.ftp, options.names);
    this.prepareTransfer = passive(options, (seen) => {
      this.dataSeen = seen;
    });
    hearReason(this.ftp);
  }

  /** Sends a listing command, and what it answers into the stream, which sets the pace. Answers the server's closing words. */
  async listInto(sink: Transform, command: string): Promise<string> {
    await this.prepareTransfer(this.ftp);
    const answer = await downloadTo(sink, {
      ftp: this.ftp,
      tracker: this._progressTracker,
      command,
      remotePath: "",
      type: "list",
    });
    return answer.message;
  }
}

/** Paths in commands become the bytes that the server listed, also those that are no text. */
function sendAsNamed(ftp: FTPContext, names: NameEncoding): void {
  const send = ftp.send.bind(ftp);
  ftp.send = (command) => {
    const bytes = /^(USER|PASS) /i.test(command) ? command : bytesOf(command, names);
    if (typeof bytes === "string") return send(command);
    if (bytes.includes("\n") || bytes.includes("\r"))
      throw new Error("a line break in a name cannot be sent");
    // Of the context, which encodes what it sends by it; its setter would change how answers are read, too.
    const { encoding } = ftp;
    Reflect.set(ftp, "_encoding", "latin1");
    try {
      send(bytes.toString("latin1"));
    } finally {
      Reflect.set(ftp, "_encoding", encoding);
    }
  };
}

/**
 * ProFTPD resets the data connection of a file that may not be read, and only then says so on the control connection.
 * Without this the reset would close both, and a refusal for good would look like a fault of the network.
 */
function hearReason(ftp: FTPContext): void {
  const close = ftp.closeWithError.bind(ftp);
  ftp.closeWithError = (error) => {
    const data = ftp.dataSocket;
    const reset = error.message.endsWith("(data socket)") && !error.message.startsWith("Timeout");
    if (data === undefined || !reset) return close(error);
    const unlessHeard = () => {
      if (ftp.dataSocket === data) close(error);
    };
    setTimeout(unlessHeard, REASON_WAIT_MS).unref();
  };
}

/** EPSV, which tells a port alone; PASV where the server does not know that, remembered for the connection. */
function passive(
  options: Pick<FtpOptions, "passive" | "passiveAddress">,
  onSeen: (seen: DataSeen) => void,
): Client["prepareTransfer"] {
  let mode = options.passive;
  return async (ftp) => {
    if (mode !== "pasv") {
      try {
        const answer = await ftp.request("EPSV");
        await connectForPassiveTransfer(controlHost(ftp), parseEpsvResponse(answer.message), ftp);
        mode = "epsv";
        onSeen(watched(ftp, { way: "EPSV", told: null, used: controlHost(ftp) }));
        return answer;
      } catch (thrown) {
        // Some firewalls let EPSV pass and not its connection, so anything but a success in auto means: the other way.
        if (mode === "epsv" || (ftp.closed && !(thrown instanceof FTPError))) throw thrown;
      }
    }
    const answer = await ftp.request("PASV");
    const told = parsePasvResponse(answer.message);
    // Behind an address translation servers tell their inner address; and connecting anywhere else on a server's
    // word is an attack (FTP bounce).
    const host = options.passiveAddress === "announced" ? told.host : controlHost(ftp);
    await connectForPassiveTransfer(host, told.port, ftp);
    mode = "pasv";
    onSeen(watched(ftp, { way: "PASV", told: told.host, used: host }));
    return answer;
  };
}

function watched(ftp: FTPContext, seen: Pick<DataSeen, "way" | "told" | "used">): DataSeen {
  const data: DataSeen = { ...seen, reused: null, protocol: "" };
  const { dataSocket } = ftp;
  if (dataSocket instanceof TLSSocket)
    dataSocket.once("secureConnect", () => {
      data.reused = dataSocket.isSessionReused();
      data.protocol = dataSocket.getProtocol() ?? "";
    });
  return data;
}

function controlHost(ftp: FTPContext): string {
  const host = ftp.socket.remoteAddress;
  if (host === undefined) throw new Error("the control connection is closed");
  return host.replace(/^::ffff:/i, "");
}
