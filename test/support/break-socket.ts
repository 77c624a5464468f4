import type { Socket } from "node:net";

/** As a line that breaks. A socket whose end is being sent cannot be reset: Node then leaves it open (EINVAL). */
export function breakSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
