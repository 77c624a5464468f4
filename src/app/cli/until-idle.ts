/** Waits until a gateway has taken all files and everything is at rest. */
import type { Gateway } from "#gateway/gateway.ts";

/** A check while steps are in progress reads nothing. */
const CHECK_EVERY_MS = { busy: 20, otherwise: 100 };

/** `idle`: no work is left; `timeout`: work is left; `stopped`: a signal came. */
export async function waitUntilIdle(
  gateway: Gateway,
  stop: AbortSignal,
  timeoutMs: number,
): Promise<"idle" | "timeout" | "stopped"> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (await gateway.isIdle(true)) return "idle";
    if (stop.aborted) return "stopped";
    if (performance.now() > deadline) return "timeout";
    await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS[gateway.isBusy ? "busy" : "otherwise"]));
  }
}
