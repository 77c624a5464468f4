/**
 * A service that keeps nothing: it gives tokens, counts what is pushed, and tells by `GET /count`. Below
 * `/<manner>` it answers pushes in a manner of its own, for what a service may do to the memory of the
 * gateway.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SinkAnswer {
  readonly url: string;
}

export interface SinkCount {
  readonly calls: number;
  readonly points: number;
  readonly bytes: number;
  /** CPU seconds since the last count. */
  readonly cpu: number;
  /** When the last push was answered, in milliseconds of the epoch; 0: none was. */
  readonly lastMs: number;
}

/**
 * What stands before each reading. Counted in the bytes, since to parse them would cost more than all the
 * rest of the sink.
 */
const MARK = Buffer.from('"date":');
const ACCEPTED = { "content-type": "application/json" };
const TOKEN = JSON.stringify({ access_token: "bench", expires_in: 86_400, scope: "datahub-api push-data" });
const HUGE_CHUNK = Buffer.alloc(64 * 1024, "x");
const DRIP_MS = 50;
const SLOW_MS = 500;

const NOTHING = { calls: 0, points: 0, bytes: 0, lastMs: 0 };
let counted = { ...NOTHING };
let cpuBefore = process.cpuUsage();

/** How pushes are answered, by the first part of the path. */
const MANNERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  accept: (response) => accept(response),
  /** Readings are not counted, since that takes the CPU from those who are measured. */
  uncounted: (response) => accept(response),
  slow: (response) => void setTimeout(() => accept(response), SLOW_MS),
  /** A body without an end, as fast as it is taken. */
  huge(response) {
    response.writeHead(200, ACCEPTED);
    const pour = () => {
      while (!response.destroyed && response.write(HUGE_CHUNK));
    };
    response.on("drain", pour);
    pour();
  },
  /** A body without an end, byte by byte. */
  drip(response) {
    response.writeHead(200, ACCEPTED);
    const timer = setInterval(() => response.write(" "), DRIP_MS);
    response.on("close", () => clearInterval(timer));
  },
  /** Header lines without an end. */
  headers(response) {
    response.socket?.write("HTTP/1.1 200 OK\r\n");
    const timer = setInterval(() => response.socket?.write(`x-${"x".repeat(1000)}: 1\r\n`), 1);
    response.socket?.on("close", () => clearInterval(timer));
    response.socket?.on("error", () => response.destroy());
  },
  elsewhere: (response) => void response.writeHead(307, { location: "/accept/push/api/data" }).end(),
  page: (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html>Welcome</html>"),
};

function accept(response: ServerResponse): void {
  response.writeHead(200, ACCEPTED).end("{}");
  counted.lastMs = Date.now();
}

async function countBytes(request: IncomingMessage): Promise<void> {
  for await (const chunk of request as AsyncIterable<Buffer>) counted.bytes += chunk.length;
  counted.calls += 1;
}

async function countBody(request: IncomingMessage): Promise<void> {
  let tail = Buffer.alloc(0);
  for await (const chunk of request as AsyncIterable<Buffer>) {
    counted.bytes += chunk.length;
    // A mark may lie across two chunks.
    counted.points += marksIn(Buffer.concat([tail, chunk.subarray(0, MARK.length - 1)])) + marksIn(chunk);
    tail = Buffer.from(chunk.subarray(Math.max(0, chunk.length - MARK.length + 1)));
  }
  counted.calls += 1;
}

function marksIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(MARK); at >= 0; at = bytes.indexOf(MARK, at + MARK.length)) count += 1;
  return count;
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? "";
  if (path === "/count") {
    const used = process.cpuUsage(cpuBefore);
    const answer: SinkCount = { ...counted, cpu: (used.user + used.system) / 1e6 };
    counted = { ...NOTHING };
    cpuBefore = process.cpuUsage();
    response.end(JSON.stringify(answer));
  } else if (path.endsWith("/token")) {
    request.resume();
    response.writeHead(200, ACCEPTED).end(TOKEN);
  } else {
    const name = path.split("/")[1] ?? "";
    await (name === "uncounted" ? countBytes(request) : countBody(request));
    const manner = MANNERS[name];
    if (manner === undefined) response.writeHead(404).end();
    else manner(response);
  }
}

const server = createServer((request, response) => {
  // Whoever sends may break off.
  serve(request, response).catch(() => response.destroy());
});
/** 0: any that is free. */
const port = Number(process.argv[2] ?? 0);
await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
const answer: SinkAnswer = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
process.stdout.write(`${JSON.stringify(answer)}\n`);
