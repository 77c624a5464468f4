/**
 * The thread that ends its process of R as soon as the thread of the hub that started it is gone: R keeps the main
 * thread busy, and a script that never ends would outlive the hub.
 */
import { Socket } from "node:net";
import { parentPort } from "node:worker_threads";
import { LIFELINE } from "./webr-frames.ts";

const lifeline = new Socket({ fd: LIFELINE, readable: true, writable: false });
for (const event of ["end", "close", "error"] as const)
  lifeline.on(event, () => void process.kill(process.pid, "SIGKILL"));
lifeline.resume();
parentPort?.postMessage("watching");
