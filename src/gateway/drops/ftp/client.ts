/**
 * basic-ftp's client, extended by listings that stream and by passive addresses according to the drop's
 * options.
 */
import type { Transform } from "node:stream";
import { TLSSocket } from "node:tls";
import { Client, type FTPContext, FTPError } from "basic-ftp";
import {
  connectForPassiveTransfer,
  downloadTo,
  parseEpsvResponse,
  parsePasvResponse,
} from "basic-ftp/dist/transfer.js";
import { bytesOf, type NameEncoding } from "#core/file-names.ts";
import type { FtpOptions } from "../options.ts";

/** How long the server may take to report why it broke off a transfer. */
const REASON_WAIT_MS = 2_000;

/** The facts of a data connection. */
export interface DataSeen {
  readonly way: "EPSV" | "PASV";
  /** The address that the server announced; null where it announced only a port. */
  readonly announced: string | null;
  /** The address that was used. */
  readonly used: string;
  /**
   * Whether the connection resumed the TLS session of the control connection; null without TLS, and while
   * unknown.
   */
  reused: boolean | null;
  /** Protocol version, such as `TLSv1.3`; empty without TLS. */
  protocol: string;
}

export class FtpClient extends Client {
  /** Facts of the last data connection. */
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
    receiveReason(this.ftp);
  }

  /**
   * Sends a listing command, and pipes the listing into the stream, which sets the pace. Returns the server's
   * closing text.
   */
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

/** Encodes the paths of commands to the bytes that the server listed, even those that are not text. */
function sendAsNamed(ftp: FTPContext, names: NameEncoding): void {
  const send = ftp.send.bind(ftp);
  ftp.send = (command) => {
    const bytes = /^(USER|PASS) /i.test(command) ? command : bytesOf(command, names);
    if (typeof bytes === "string") return send(command);
    if (bytes.includes("\n") || bytes.includes("\r")) throw new Error("a line break in a name cannot be sent");
    // The encoding for sending; its setter would also change how responses are decoded.
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
 * ProFTPD resets the data connection of a file without read permission, and reports the refusal on the
 * control connection only afterwards. Without this wait the reset would close both, and a permanent refusal
 * would look like a fault of the network.
 */
function receiveReason(ftp: FTPContext): void {
  const close = ftp.closeWithError.bind(ftp);
  ftp.closeWithError = (error) => {
    const data = ftp.dataSocket;
    const reset = error.message.endsWith("(data socket)") && !error.message.startsWith("Timeout");
    if (data === undefined || !reset) return close(error);
    const unlessReceived = () => {
      if (ftp.dataSocket === data) close(error);
    };
    setTimeout(unlessReceived, REASON_WAIT_MS).unref();
  };
}

/**
 * EPSV, which announces only a port; PASV where the server does not support EPSV, remembered for the
 * connection.
 */
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
        onSeen(watched(ftp, { way: "EPSV", announced: null, used: controlHost(ftp) }));
        return answer;
      } catch (thrown) {
        // Some firewalls let EPSV pass but not its connection, so in auto any failure leads to PASV.
        if (mode === "epsv" || (ftp.closed && !(thrown instanceof FTPError))) throw thrown;
      }
    }
    const answer = await ftp.request("PASV");
    const response = parsePasvResponse(answer.message);
    // Behind an address translation servers announce their inner address, and a connection to any other
    // announced address would permit an attack (FTP bounce).
    const host = options.passiveAddress === "announced" ? response.host : controlHost(ftp);
    await connectForPassiveTransfer(host, response.port, ftp);
    mode = "pasv";
    onSeen(watched(ftp, { way: "PASV", announced: response.host, used: host }));
    return answer;
  };
}

function watched(ftp: FTPContext, seen: Pick<DataSeen, "way" | "announced" | "used">): DataSeen {
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
