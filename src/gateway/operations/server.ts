import { type Listener, openListener } from "#core/http/listener.ts";
import { httpOptions } from "#core/http-options.ts";
import type { OperationsParts, Served, ServerOptions } from "./application.ts";
import { type Console, consoleUrl, createConsole, oneTimeLink } from "./console/console.ts";

export interface OperationsServer {
  /** Such as `http://127.0.0.1:9464`. */
  readonly url: string;
  /** The URL that webhooks are sent to: the same, unless they have a listener of their own. */
  readonly webhookUrl: string;
  /** Where browsers reach the console; null where it is not served. */
  readonly consoleUrl: string | null;
  /** A link that signs in once, as an operator of this name; null where people sign in with passwords. */
  consoleLink(name: string): string | null;
  close(): Promise<void>;
}

export async function startOperations(options: ServerOptions, parts: OperationsParts): Promise<OperationsServer> {
  const { http = httpOptions.parse({}), listen, webhook } = options;
  const { log } = parts;
  const people = peopleOf(options, parts);
  const apart = people?.options.listen;
  const urls = { console: "" };
  const listeners: Listener[] = [];
  const open = async (address: string, setting: string, served: Omit<Served, "urls">) => {
    const tls = served.people?.options.tls;
    const listener = await openListener({ address, setting }, { http, tls, log }, async (server) =>
      (await import("./application.ts")).createApplication(server, options, parts, { ...served, urls }),
    );
    listeners.push(listener);
    return listener.url;
  };
  try {
    const hasWebhook = webhook.listen === undefined;
    const mainPeople = apart === undefined ? people : null;
    const url = await open(listen, "operations.listen", { people: mainPeople, hasRoutes: true, hasWebhook });
    urls.console = url;
    if (apart !== undefined) {
      const pages = { people, hasRoutes: true, hasWebhook: false };
      urls.console = await open(apart, "operations.console.listen", pages);
    }
    const receiver = { people: null, hasRoutes: false, hasWebhook: true };
    const webhookUrl =
      webhook.listen === undefined ? url : await open(webhook.listen, "operations.webhook.listen", receiver);
    return {
      ...{ url, webhookUrl, close: () => closeAll(listeners) },
      consoleUrl: people?.refusal === null ? consoleUrl(people, urls.console) : null,
      consoleLink: (name) => (people?.links == null ? null : oneTimeLink(people, urls.console, name).url),
    };
  } catch (thrown) {
    await closeAll(listeners);
    throw thrown;
  }
}

async function closeAll(listeners: readonly Listener[]): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close()));
}

function peopleOf({ listen, console }: ServerOptions, { log, people }: OperationsParts): Console | null {
  return people === undefined || console === undefined ? null : createConsole({ ...people, listen, console, log });
}
