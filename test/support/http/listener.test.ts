import fastify from "fastify";
import { afterEach, expect, test } from "vitest";
import { type Listener, type LoadApplication, openListener } from "#core/http/listener.ts";
import { httpOptions } from "#core/http-options.ts";
import { silentLog } from "#core/log.ts";

const open: Listener[] = [];
afterEach(async () => {
  for (const listener of open.splice(0)) await listener.close();
});

async function listenerOf(load: LoadApplication, address = "127.0.0.1:0"): Promise<string> {
  const place = { address, setting: "operations.listen" };
  const listener = await openListener(place, { http: httpOptions.parse({}), log: silentLog }, load);
  open.push(listener);
  return listener.url;
}

const application: LoadApplication = async (server) => {
  const app = fastify({ serverFactory: () => server });
  app.get("/words", () => ({ words: "here" }));
  return app as never;
};

test("the application is loaded once, by the first requests, which wait for it", async () => {
  let loads = 0;
  const url = await listenerOf((server) => {
    loads += 1;
    return application(server);
  });
  expect(loads).toBe(0);
  const answers = await Promise.all([fetch(`${url}/words`), fetch(`${url}/words`)]);
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([{ words: "here" }, { words: "here" }]);
  expect(loads).toBe(1);
});

test("a request whose application cannot be loaded is answered 503, and the next one loads it again", async () => {
  let loads = 0;
  const url = await listenerOf((server) => {
    loads += 1;
    return loads === 1 ? Promise.reject(new Error("no such module")) : application(server);
  });
  expect((await fetch(`${url}/words`)).status).toBe(503);
  expect((await fetch(`${url}/words`)).status).toBe(200);
});

test("localhost is reached by IPv4, and the port of another program is named", async () => {
  const url = await listenerOf(application, "localhost:0");
  expect((await fetch(`http://127.0.0.1:${new URL(url).port}/words`)).status).toBe(200);
  const taken = `127.0.0.1:${new URL(url).port}`;
  await expect(listenerOf(application, taken)).rejects.toMatchObject({
    code: "HG-CONF-004",
    message: expect.stringContaining("is taken by another program"),
  });
});

test("a listener without requests closes without loading anything", async () => {
  let loads = 0;
  await listenerOf((server) => {
    loads += 1;
    return application(server);
  });
  for (const listener of open.splice(0)) await listener.close();
  expect(loads).toBe(0);
});
