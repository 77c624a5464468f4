/**
 * How the connections of an HTTP server end when it closes. Node ends those that are idle at that moment and waits for all others, however
 * long: for one whose answer ends a moment later, and whose client keeps it for the next request; for one by which nothing was ever asked.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

/**
 * What is being asked when the server closes is answered whole, and no connection outlives its answer. `silenceMs`: how long a client may
 * leave a request unfinished or an answer unread by then before its connection is cut.
 */
export function endConnectionsOnClose(app: FastifyInstance, silenceMs: number): void {
  const connections = new Set<Socket>();
  /** What is being answered, in order; by the TLS connection where there is one. */
  const answers = new Map<Socket, Set<ServerResponse>>();
  let closing = false;

  const settle = (): void => {
    // Those that are left would be waited for, and nobody waits for an answer on them.
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
      // Its headers said that it stays, when they went out before.
      if (closing) socket.destroySoon();
      forget();
    });
  });
  app.addHook("preClose", async () => {
    closing = true;
    for (const own of answers.values()) {
      for (const response of own) cutWhenSilent(response, silenceMs);
      // The connection says that it ends, if that can still be said, by the last of what was asked by it.
      const last = [...own].at(-1);
      if (last !== undefined) last.shouldKeepAlive = false;
    }
    settle();
  });
}

/** While the server is at the answer, nothing moves either. */
function cutWhenSilent(response: ServerResponse, silenceMs: number): void {
  const { req: request } = response;
  response.setTimeout(silenceMs, () => {
    const waitsForUs = request.complete && !response.headersSent;
    if (!waitsForUs) request.socket.destroy();
  });
}
