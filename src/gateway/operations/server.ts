/**
 * The operations API: health, metrics, runs, and the receiver of outcome webhooks. Loopback unless configured
 * otherwise. It listens at once; the first request loads what answers (`application.ts`).
 */
import type { Registry } from "prom-client";
import type { Clock } from "#core/clock.ts";
import { type Listener, openListener } from "#core/http/listener.ts";
import { httpOptions } from "#core/http-options.ts";
import type { Logger } from "#core/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Served } from "./application.ts";
import { type Console, consoleUrl, createConsole, oneTimeLink } from "./console/console.ts";
import type { ServedEndpoint } from "./endpoint-routes.ts";
import type { LiveUpdates } from "./live.ts";
import type { OperationsOptions } from "./options.ts";
import type { HealthPart, WaitingPart, WaitingQuery } from "./state-of-work.ts";

export type WebhookAnswer =
  | { readonly status: "recorded" | "unknown" }
  | { readonly status: "refused"; readonly reason: string };

export interface OperationsParts {
  readonly ledger: Ledger;
  readonly log: Logger;
  readonly metrics: Registry;
  health(): Promise<readonly HealthPart[]>;
  waiting(query?: WaitingQuery): Promise<WaitingPart>;
  receiveOutcome(body: string, signature: string | undefined): Promise<WebhookAnswer>;
  /** Commands of persons, authorized only by the secret (`endpoint-file.ts`); refused when absent. */
  readonly commands?: {
    readonly secret: string;
    execute(body: unknown): Promise<unknown>;
    /** The data of the configuration's file as it is in force. */
    configuration?(): object;
  };
  /** Sessions of people in browsers; none when absent. */
  readonly people?: { readonly clock: Clock; readonly node: string | null; readonly linksFile: string };
  readonly live?: LiveUpdates;
  /**
   * Loads the endpoints beside those of `application.ts`, or in place of one with the same method and path. Called with
   * the first request.
   */
  readonly endpoints?: () => Promise<readonly ServedEndpoint[]>;
}

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

export type ServerOptions = Pick<OperationsOptions, "listen" | "webhook"> &
  Partial<Pick<OperationsOptions, "access" | "http" | "console">>;

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
