/** Pages that say why a sign-in by a provider failed, and what to do. */

import type { SignOnFaultKind } from "#core/sign-on/faults.ts";
import { html } from "#pages/kit/index.ts";
import type { Page } from "./frame.ts";

export interface SignOnPage {
  readonly kind: SignOnFaultKind | "no-provider" | "confirm-address" | "unproven-address";
  /** Of the provider. */
  readonly name: string;
  readonly label: string;
}

interface Words {
  readonly status: number;
  readonly title: string;
  readonly words: string;
  /** The person who may succeed with a further attempt. */
  readonly again: "same" | "another" | null;
}

const WORDS: Readonly<Record<SignOnPage["kind"], Words>> = {
  provider: {
    status: 503,
    title: "The sign-in service does not answer",
    words:
      "The service that signs you in cannot be reached at the moment. Try again in a few minutes. If it lasts, ask " +
      "the operator of this hub, whose log says why.",
    again: "same",
  },
  settings: {
    status: 502,
    title: "The sign-in service is not set up correctly",
    words:
      "This hub and the service that signs you in do not understand each other, and to try again will not help. Ask " +
      "the operator of this hub, whose log says why.",
    again: null,
  },
  declined: {
    status: 403,
    title: "You were not signed in",
    words: "The sign-in was cancelled, or the service does not let you use this hub. Try again, or ask who runs it.",
    again: "same",
  },
  expired: {
    status: 400,
    title: "This sign-in has lapsed",
    words:
      "It took too long, was finished already, or began in another browser or tab. Nothing is wrong with your user: " +
      "sign in again.",
    again: "same",
  },
  "unknown-user": {
    status: 403,
    title: "This hub does not know you",
    words:
      "The service knows who you are, but you are no user of this hub. Ask a manager of your account for an " +
      "invitation, or sign in as another person.",
    again: "another",
  },
  "name-taken": {
    status: 409,
    title: "Your user name is taken",
    words: "Another user of this hub has your name. Ask the operator of this hub.",
    again: "another",
  },
  inactive: {
    status: 403,
    title: "Your user is deactivated",
    words: "A manager of your account, or the operator of this hub, can activate it again.",
    again: "another",
  },
  "no-account": {
    status: 403,
    title: "You may enter no account",
    words:
      "The service knows who you are, but gives you no account of this hub. Ask the one who manages your groups " +
      "there, or a manager of your account.",
    again: "another",
  },
  "confirm-address": {
    status: 403,
    title: "Confirm your address",
    words:
      "A user of this hub has your e-mail address, and has not confirmed it yet. A mail with a link was sent there: " +
      "open it, and sign in again. Links that came before no longer work. No more than five are sent in an hour.",
    again: "same",
  },
  "unproven-address": {
    status: 403,
    title: "Your address is not confirmed",
    words:
      "A user of this hub has your e-mail address, and has not confirmed it. This hub sends no mails by which you " +
      "could do that: ask the operator of this hub.",
    again: "another",
  },
  "no-provider": {
    status: 404,
    title: "There is no such sign-in service",
    words: "The address names a service that this hub does not have.",
    again: null,
  },
};

export function signOnFaultPage({ kind, name, label }: SignOnPage, href: (path: string) => string): Page {
  const { status, title, words, again } = WORDS[kind];
  const begin = href(`/sign-in/oidc/${name}${again === "another" ? "?as=another" : ""}`);
  const button = again === "another" ? `${label} as another person` : label;
  const children = [
    html`<p>${words}</p>`,
    again === null ? null : html`<p><a class="button" href=${begin}>${button}</a></p>`,
    html`<p><a href=${href("/sign-in")}>Back to the sign-in</a></p>`,
  ];
  return { title, status, isNarrow: true, children };
}
