/** Puts a file into an HTTP intake by a person's command, as if a sender had uploaded it to the storage route. */
import { Readable } from "node:stream";
import type { IntakeOptions } from "../options.ts";
import { type FilePut, nameFault, type PutFile, refusedPut } from "../put-file.ts";
import { type BodyStore, BodyTooLarge, type Received } from "./body-store.ts";

const FILE_NAME_BYTES_MAX = 255;

export interface PutFacts {
  readonly options: Pick<IntakeOptions, "name" | "limits">;
  readonly bodies: BodyStore;
  readonly service: string;
  readonly nowMs: number;
  isFull(): Promise<boolean>;
}

/** Durable when it resolves. Throws `RejectedError`; no bytes remain then. */
export async function putBody({ name, content, by }: PutFile, facts: PutFacts): Promise<FilePut> {
  const { options, bodies, service } = facts;
  const subject = `${options.name}: ${name}`;
  const fault = nameFault(name);
  if (fault !== null) throw refusedPut(subject, fault, "Choose another name.");
  if (Buffer.byteLength(name) > FILE_NAME_BYTES_MAX)
    throw refusedPut(subject, `the name has more than ${FILE_NAME_BYTES_MAX} bytes`, "Choose a shorter name.");
  if ((await bodies.waitingBytes()) >= options.limits.backlog || (await facts.isFull()))
    throw refusedPut(subject, "too much waits to be delivered", "Send it again when the service is available.");
  const received = await receive(Readable.from(content), subject, facts);
  const path = `storage/${received.id}/${name}`;
  await bodies.publish(received, {
    ...{ id: received.id, path, size: received.size, mtime: received.mtime, sha256: received.sha256 },
    ...{ route: "storage", username: `${by} (console)`, service, operationId: null, idempotencyKey: null, token: null },
    details: JSON.stringify({}),
    answer: JSON.stringify(received.id),
  });
  return { path, bytes: received.size };
}

async function receive(stream: Readable, subject: string, facts: PutFacts): Promise<Received> {
  const { body: bytesMax } = facts.options.limits;
  try {
    return await facts.bodies.receive(stream, facts.nowMs, bytesMax);
  } catch (thrown) {
    if (!(thrown instanceof BodyTooLarge)) throw thrown;
    throw refusedPut(subject, `it is larger than ${bytesMax} bytes`, "The intake's `limits.body` sets this.");
  }
}
