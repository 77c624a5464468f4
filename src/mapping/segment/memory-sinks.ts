/** Sinks for batches that no segment is written of. */
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BatchSink, SliceCounter } from "./writer.ts";

/** Keeps nothing: only the slices are reported, for a summary. */
export function createCountingSink(): BatchSink {
  const counter = new SliceCounter();
  return {
    spillPath: temporaryPath(),
    append: (body) => Promise.resolve(counter.next(body)),
    publish: () => Promise.resolve(),
    discard: () => Promise.resolve(),
  };
}

/** Keeps the bodies, for a dry run. */
export function createMemorySink(): BatchSink & { readonly bodies: readonly Buffer[] } {
  const counter = new SliceCounter();
  const bodies: Buffer[] = [];
  return {
    bodies,
    spillPath: temporaryPath(),
    append(body) {
      bodies.push(Buffer.from(body.bytes));
      return Promise.resolve(counter.next(body));
    },
    publish: () => Promise.resolve(),
    discard: () => Promise.resolve(void bodies.splice(0)),
  };
}

function temporaryPath(): string {
  return join(tmpdir(), `headgate-${randomUUID()}.spill`);
}
