import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TransientError } from "#core/errors.ts";
import { isOpenFault } from "#gateway/delivery/delivery.ts";
import { HttpClient } from "#wire/client/http.ts";
import { never } from "./setup.ts";

const timeouts = { connect: 2_000, headers: 5_000, body: 5_000, total: 5_000 };
let server: Server;
let client: HttpClient;
beforeEach(async () => {
  server = createServer((request) => request.socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  client = new HttpClient({ connections: 1, timeouts });
});
afterEach(async () => {
  await client.close();
  if (server.listening) await new Promise((resolve) => server.close(resolve));
});

function faultOf(origin: string): Promise<unknown> {
  const call = { method: "POST", path: "/", headers: {}, body: "[]", answerMax: 100, signal: never } as const;
  return client.call({ ...call, origin }).catch((thrown: unknown) => thrown);
}

it("a call without a connection stores nothing", async () => {
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  expect(isOpenFault(await faultOf(`http://127.0.0.1:${port}`))).toBe(false);
  expect(isOpenFault(await faultOf("http://nobody.invalid"))).toBe(false);
});

it("a call whose connection was lost may be stored", async () => {
  const { port } = server.address() as AddressInfo;
  expect(isOpenFault(await faultOf(`http://127.0.0.1:${port}`))).toBe(true);
  const cause = Object.assign(new Error("read EHOSTUNREACH"), { code: "EHOSTUNREACH", syscall: "read" });
  const facts = { operation: "POST /", subject: "http://service", cause };
  expect(isOpenFault(new TransientError("HG-PUSH-001", facts))).toBe(true);
});
