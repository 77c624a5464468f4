/** An operations API with a console, and a browser that keeps its cookie. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { type Clock, systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { ServedEndpoint } from "#gateway/operations/endpoint-routes.ts";
import type { LiveUpdates } from "#gateway/operations/live.ts";
import { type OperationsOptions, operationsOptions } from "#gateway/operations/options.ts";
import { type OperationsServer, startOperations } from "#gateway/operations/server.ts";

export const SECRET = "the secret of the endpoint file";
export const READ_TOKEN = "a token for reading";

export interface TestConsole {
  readonly server: OperationsServer;
  /** Lines of the log. */
  readonly lines: readonly string[];
  /** Time that the test lets pass, in milliseconds. */
  pass(ms: number): void;
  close(): Promise<void>;
}

type Given = Omit<Partial<Record<keyof OperationsOptions, unknown>>, "console"> & { readonly console?: object };

export async function startConsole(
  given: Given = {},
  endpoints: readonly ServedEndpoint[] = [],
  live?: LiveUpdates,
): Promise<TestConsole> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const ledger = await openLedger({ kind: "sqlite", path: join(folder, "ledger.sqlite") }, { clock: systemClock });
  const lines: string[] = [];
  let passedMs = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now().add({ milliseconds: passedMs }),
    monotonicMs: () => systemClock.monotonicMs() + passedMs,
  };
  const tokens = [{ name: "script", token: READ_TOKEN, rights: ["read"] }];
  const options = operationsOptions.parse({ listen: "127.0.0.1:0", access: { tokens }, ...given });
  const server = await startOperations(options, {
    ...{ ledger, metrics: new Registry(), drops: () => [], endpoints: async () => endpoints },
    log: createLog("info", { write: (line: string) => void lines.push(line) }),
    health: async () => [],
    waiting: async () => ({ files: [], total: 0, next: null }),
    receiveOutcome: async () => ({ status: "unknown" }),
    commands: { secret: SECRET, execute: async (body) => ({ done: body }) },
    people: { clock, node: null, linksFile: join(folder, "console.links") },
    ...(live === undefined ? {} : { live }),
  });
  const close = async () => {
    await server.close();
    await ledger.close();
    rmSync(folder, { recursive: true });
  };
  const pass = (ms: number) => {
    passedMs += ms;
  };
  return { server, lines, pass, close };
}

export interface TestBrowser {
  /** Value of the session's cookie with its name, such as `headgate-console-1=…`; empty without one. */
  cookie: string;
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** As a page of the console asks, with its token. */
  post(path: string, body: unknown): Promise<Response>;
  /** As a form of a page is sent, with its hidden fields. */
  submit(page: Response, path: string, fields: Readonly<Record<string, string>>): Promise<Response>;
}

export function openBrowser(url: string): TestBrowser {
  const browser: TestBrowser = {
    cookie: "",
    async ask(path, init = {}) {
      const headers = { ...(browser.cookie === "" ? {} : { cookie: browser.cookie }), ...init.headers };
      const answer = await fetch(new URL(path, url), { redirect: "manual", ...init, headers });
      for (const line of answer.headers.getSetCookie()) browser.cookie = line.split(";")[0] ?? "";
      return answer;
    },
    async post(path, body) {
      const { csrfToken } = (await (await browser.ask("/operations/me")).json()) as { csrfToken: string };
      const headers = { "content-type": "application/json", "x-csrf-token": csrfToken };
      return browser.ask(path, { method: "POST", headers, body: JSON.stringify(body) });
    },
    async submit(page, path, fields) {
      const hidden = [...(await page.text()).matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)];
      const body = new URLSearchParams({
        ...Object.fromEntries(hidden.map(([, name, value]) => [name, value])),
        ...fields,
      });
      return browser.ask(path, { method: "POST", body });
    },
  };
  return browser;
}
