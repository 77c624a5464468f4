/**
 * Limits of the connections of an HTTP server. Node bounds the time of headers; its bound for bodies covers the whole
 * body, which a large upload over a slow line would exceed. So bodies are bounded by their pace: a body that stalls,
 * or drips, is answered by 408.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HttpLimits } from "./http-options.ts";
import type { Logger } from "./log.ts";
import { createRareWarning } from "./rare-warnings.ts";

const CHECKS_PER_IDLE = 4;
const CHECK_MS_MAX = 5_000;
const TIMED_OUT = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/** Options for the constructor of the server; `limitConnections` sets the other limits. */
export function serverLimits({ headers }: HttpLimits) {
  return {
    headersTimeout: headers,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(headers, CHECK_MS_MAX),
  };
}

/** The request and response in progress on one connection. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** `bytesRead` of the connection when the request began. */
  firstByte: number;
  read: number;
  sent: number;
  /** When bytes of either direction last moved, or the connection last waited for the server itself. */
  movedMs: number;
  /** How long the server has waited for the sender. */
  waitedMs: number;
}

/** Anything with a server, such as an application of fastify. */
interface Served {
  readonly server: Server;
}

/** Call it before the server listens. */
export function limitConnections(app: Served, limits: HttpLimits, log: Logger): void {
  const { server } = app;
  const exchanges = new Map<Socket, Exchange>();
  const intervalMs = Math.min(CHECK_MS_MAX, limits.idle / CHECKS_PER_IDLE);
  let timer: NodeJS.Timeout | undefined;
  server.maxConnections = limits.connections;
  server.keepAliveTimeout = limits.keepAlive;
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (!exchanges.has(socket)) socket.once("close", () => exchanges.delete(socket));
    const read = socket.bytesRead;
    const moved = { read, sent: 0, movedMs: performance.now(), waitedMs: 0 };
    exchanges.set(socket, { request, response, firstByte: read, ...moved });
  });
  warnOfDrops(app, limits, log);
  const check = () => {
    for (const [socket, exchange] of exchanges) {
      const why = faultOf(socket, exchange, limits, intervalMs);
      if (why === null) continue;
      exchanges.delete(socket);
      log.info({ from: socket.remoteAddress, received: socket.bytesRead - exchange.firstByte }, why);
      end(socket, exchange.response);
    }
  };
  server.on("listening", () => {
    timer ??= setInterval(check, intervalMs).unref();
  });
  server.on("close", () => clearInterval(timer));
}

/** Why the exchange is ended; null while it may continue. */
function faultOf(socket: Socket, exchange: Exchange, limits: HttpLimits, elapsedMs: number): string | null {
  const { request, response } = exchange;
  const nowMs = performance.now();
  const read = socket.bytesRead;
  const sent = socket.bytesWritten - socket.writableLength;
  const isReceiving = !request.complete;
  const isSending = response.headersSent && !response.writableFinished && socket.writableLength > 0;
  // While received bytes are unread, the sender waits for the server.
  const isServerDue = isReceiving ? request.readableLength > 0 : !isSending;
  if (isReceiving && !isServerDue) exchange.waitedMs += elapsedMs;
  if (isServerDue || read !== exchange.read || sent !== exchange.sent) exchange.movedMs = nowMs;
  exchange.read = read;
  exchange.sent = sent;
  const isStill = nowMs - exchange.movedMs >= limits.idle;
  if (isSending && isStill) return "a client that did not read its response was disconnected";
  if (!isReceiving) return null;
  if (isStill) return "a request whose body stalled was ended";
  const due = (exchange.waitedMs / 1_000) * limits.bytesPerSecond;
  const isSlow = exchange.waitedMs >= limits.idle && read - exchange.firstByte < due;
  return isSlow ? "a request whose body came too slowly was ended" : null;
}

function end(socket: Socket, response: ServerResponse): void {
  if (response.headersSent) return void socket.destroy();
  socket.end(TIMED_OUT);
  socket.destroySoon();
}

function warnOfDrops({ server }: Served, { connections }: HttpLimits, log: Logger): void {
  const warn = createRareWarning(log, "dropped", "connections were closed at once, since there are too many");
  server.on("drop", () => warn({ connections }));
}
