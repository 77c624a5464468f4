/** OpenStack Swift with its S3 interface, as a server of object storage. */
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { makeGround } from "./real-server.ts";
import { type ServerProcess, startServer } from "./server-process.ts";

const PROGRAM = fileURLToPath(new URL("./swift-server.py", import.meta.url));

/** Access keys that `swift-server.py` knows. */
export const WRITER = { accessKeyId: "test:tester", secretAccessKey: "testing" };
export const READER = { accessKeyId: "test:reader", secretAccessKey: "reading" };

export interface Swift {
  readonly port: number;
  readonly endpoint: string;
  readonly client: S3Client;
  /** The name of a new bucket. */
  bucket(): Promise<string>;
  stop(): Promise<void>;
  /** On the same port, with the same objects. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startSwift(): Promise<Swift> {
  const ground = await makeGround();
  const start = (wished?: number): Promise<ServerProcess> =>
    startServer(async (port) => ({ program: "/usr/bin/python3", args: [PROGRAM, ground, String(port)] }), wished);
  let server = await start();
  const { port } = server;
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new S3Client({
    ...{ endpoint, region: "us-east-1", forcePathStyle: true, credentials: { ...WRITER } },
    ...{ requestChecksumCalculation: "WHEN_REQUIRED", responseChecksumValidation: "WHEN_REQUIRED" },
  });
  let buckets = 0;
  return {
    port,
    endpoint,
    client,
    async bucket() {
      buckets += 1;
      const name = `files-${buckets}`;
      await client.send(new CreateBucketCommand({ Bucket: name }));
      return name;
    },
    stop: () => server.stop(),
    async restart() {
      server = await start(port);
    },
    async close() {
      client.destroy();
      await server.stop();
      await rm(ground, { recursive: true, force: true });
    },
  };
}
