/** What crosses between the pool and its workers. */
import type { MessagePort } from "node:worker_threads";
import type { ErrorCode } from "../support/errors.ts";
import type { MapJob, MapResult } from "./mapping.ts";

/** To a worker: one file. */
export interface WorkerTask {
  readonly job: MapJob;
  /** Absolute path of the mapper's module. */
  readonly modulePath: string;
  /** Where the worker tells what happens meanwhile. */
  readonly port: MessagePort;
}

/** From a worker, while it maps. */
export type WorkerNotice =
  /** The worker took the task up; from here the time limit counts. */
  | { readonly kind: "started" }
  | { readonly kind: "log"; readonly level: "info" | "warn"; readonly message: string };

/** From a worker, at the end. */
export type WorkerAnswer =
  | { readonly kind: "result"; readonly result: MapResult }
  /** The disk failed: the same file may be mapped later. */
  | { readonly kind: "transient"; readonly code: ErrorCode; readonly message: string };
