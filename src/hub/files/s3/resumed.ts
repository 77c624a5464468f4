/** The bytes of an object as one stream: where a connection ends too early, another resumes behind its last byte. */
import { Readable } from "node:stream";

const RESUMED_MAX = 4;

export interface ObjectPart {
  readonly body: Readable;
  readonly bytes: number;
}

/** `first` begins at the byte `start`, and holds everything that is wanted. */
export function resumed(
  first: ObjectPart,
  start: number,
  next: (range: { readonly start: number; readonly end: number }) => Promise<ObjectPart>,
  faultOf: (thrown: unknown) => unknown,
): Readable {
  let body = watched(first.body);
  let isClosed = false;
  const end = start + first.bytes - 1;
  async function* chunks(): AsyncGenerator<Buffer> {
    let at = start;
    for (let faults = 0; at <= end; ) {
      try {
        for await (const chunk of body) {
          at += (chunk as Buffer).length;
          faults = 0;
          yield chunk as Buffer;
        }
        if (at <= end) throw new Error(`the object ends ${end + 1 - at} bytes too early`);
      } catch (thrown) {
        body.destroy();
        faults += 1;
        if (isClosed) return;
        if (faults > RESUMED_MAX) throw faultOf(thrown);
        body = watched((await next({ start: at, end })).body);
        if (isClosed) body.destroy();
      }
    }
  }
  const stream = Readable.from(chunks(), { objectMode: false });
  // A generator that waits for bytes does not see the end of its stream.
  stream.once("close", () => {
    isClosed = true;
    body.destroy();
  });
  return stream;
}

/** The iteration throws its fault, which does not matter once the stream is closed. */
function watched(body: Readable): Readable {
  return body.on("error", () => undefined);
}
