/** A browser without a screen: keeps cookies, follows redirects, and sends the forms of pages. */
import type { TestHub } from "./fixture.ts";

export interface Shown {
  readonly status: number;
  /** Path and query of the page that was reached. */
  readonly path: string;
  readonly html: string;
  readonly headers: Headers;
}

export type TestBrowser = ReturnType<typeof openBrowser>;

const REDIRECTS_MAX = 5;

export function openBrowser(hub: Pick<TestHub, "url">) {
  const cookies = new Map<string, string>();
  let last = "";
  const request = async (method: string, path: string, more: { body?: URLSearchParams; headers?: object } = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(hub.url() + path, {
      method,
      redirect: "manual",
      headers: { ...(cookie === "" ? {} : { cookie }), ...more.headers },
      ...(more.body === undefined ? {} : { body: more.body }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0/i.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  };
  const reached = async (response: Response, path: string): Promise<Shown> => {
    let [at, now] = [path, response];
    for (let count = 0; now.status === 303 && count < REDIRECTS_MAX; count += 1) {
      at = now.headers.get("location") ?? "";
      await now.text();
      now = await request("GET", at);
    }
    const html = await now.text();
    last = html;
    return { status: now.status, path: at, html, headers: now.headers };
  };
  const csrf = () => /name="csrf-token" content="([^"]+)"/.exec(last)?.[1] ?? "";
  const open = async (path: string) => reached(await request("GET", path), path);
  const send = async (path: string, fields: Record<string, string>, headers = {}) => {
    const body = new URLSearchParams({ csrf: csrf(), ...fields });
    return reached(await request("POST", path, { body, headers }), path);
  };
  return {
    cookies,
    csrf,
    request,
    /** Opens a page. */
    open,
    /** Sends a form of the page that was opened last. */
    send,
    async signIn(username: string, password = `${username}-password`): Promise<Shown> {
      await open("/sign-in");
      return send("/sign-in", { username, password });
    },
    /** Headers of a script of the hub's own pages. */
    script(): Record<string, string> {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      return { cookie, "x-csrf-token": csrf() };
    },
  };
}
