/**
 * Ends the connections of an HTTP server when it closes. Node ends the connections that are idle at that moment and
 * waits without limit for all others: also for one whose response ends a moment later, and whose client keeps it for
 * the next request, and for one that never sent a request.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

/**
 * A request in progress when the server closes is answered completely, and no connection outlives its response.
 * `silenceMs`: how long a client may then leave a request unfinished or a response unread before its connection is
 * cut.
 */
export function endConnectionsOnClose(app: FastifyInstance, silenceMs: number): void {
  const connections = new Set<Socket>();
  /** The responses in progress, in order, by connection (the TLS connection where there is one). */
  const answers = new Map<Socket, Set<ServerResponse>>();
  let closing = false;

  const settle = (): void => {
    // The remaining connections carry no response, and would only be waited for.
    if (closing && answers.size === 0) for (const connection of connections) connection.destroySoon();
  };
  app.server.on("connection", (connection: Socket) => {
    connections.add(connection);
    connection.once("close", () => connections.delete(connection));
    settle();
  });
  app.server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const forget = () => {
      answers.delete(socket);
      settle();
    };
    const own = answers.get(socket) ?? new Set();
    if (own.size === 0) {
      answers.set(socket, own);
      socket.once("close", forget);
    }
    own.add(response);
    response.once("close", () => {
      own.delete(response);
      if (own.size > 0) return;
      socket.removeListener("close", forget);
      // Its headers, sent before closing began, promised to keep the connection.
      if (closing) socket.destroySoon();
      forget();
    });
  });
  app.addHook("preClose", async () => {
    closing = true;
    for (const own of answers.values()) {
      for (const response of own) cutWhenSilent(response, silenceMs);
      // The last response of the connection announces its end, if its headers are not sent yet.
      const last = [...own].at(-1);
      if (last !== undefined) last.shouldKeepAlive = false;
    }
    settle();
  });
}

/** Nothing moves either while the server still computes the response. */
function cutWhenSilent(response: ServerResponse, silenceMs: number): void {
  const { req: request } = response;
  response.setTimeout(silenceMs, () => {
    const waitsForUs = request.complete && !response.headersSent;
    if (!waitsForUs) request.socket.destroy();
  });
}
