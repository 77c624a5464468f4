/** The text of a notification, and its body for each kind of receiver. */

import { masked } from "#core/secrets.ts";
import type { IsoInstant } from "../model.ts";
import type { AttentionState } from "../states.ts";
import type { Concern } from "./attention.ts";
import type { AttentionKind, WebhookReceiverOptions } from "./options.ts";

export interface Notification {
  readonly kind: "attention" | "test";
  /** Unchanged when a message is sent again. */
  readonly id: string;
  readonly at: IsoInstant;
  /** The name of the gateway that sends it. */
  readonly gateway: string;
  readonly concerns: readonly (Concern & { readonly since: IsoInstant })[];
  /** Concerns that were reported before and are resolved. */
  readonly resolved: readonly Pick<Concern, "key" | "kind" | "text">[];
}

/** Lines shown of each list in one message; further ones are counted. */
const SHOWN = 25;
const LINE_MAX = 400;

/** A file in a state without words here is a `file held`, by the name of the state. */
const WORDS: Readonly<
  Record<Exclude<AttentionKind, AttentionState> | "discarded" | "emptied", readonly [one: string, many: string]>
> = {
  discarded: ["file with discarded readings", "files with discarded readings"],
  emptied: ["file whose rows were all left out", "files whose rows were all left out"],
  unmatched: ["file that no trigger claims", "files that no trigger claims"],
  finish: ["drop whose files cannot be archived or deleted", "drops whose files cannot be archived or deleted"],
  occupied: ["changed file that cannot go back to its path", "changed files that cannot go back to their paths"],
  late: ["file late", "files late"],
  lane: ["lane waits too long", "lanes wait too long"],
  drop: ["drop in trouble", "drops in trouble"],
  service: ["service cannot be reached", "services cannot be reached"],
  trigger: ["trigger of the service cannot be used", "triggers of the service cannot be used"],
  paused: ["trigger paused by the gateway", "triggers paused by the gateway"],
  spool: ["spool nearly full", "spools nearly full"],
  configuration: ["configuration refused", "configurations refused"],
};

/** A test message, which reports no concern. */
export function testNotification(gateway: string, at: IsoInstant): Notification {
  return { kind: "test", id: `test ${at}`, at, gateway, concerns: [], resolved: [] };
}

/** `Headgate on node-1: 3 files quarantined, 1 drop in trouble` */
export function titleOf({ kind, gateway, concerns, resolved }: Notification): string {
  if (kind === "test") return `Headgate on ${gateway}: test of the notifications`;
  const counts = Object.entries(countsOf(concerns)).map(([one, count]) => {
    const words = one in WORDS ? WORDS[one as keyof typeof WORDS] : [`file ${one}`, `files ${one}`];
    return `${count} ${words[count === 1 ? 0 : 1]}`;
  });
  if (counts.length === 0) return `Headgate on ${gateway}: ${resolved.length} in order again`;
  return `Headgate on ${gateway}: ${counts.join(", ")}`;
}

/** The lines below the title. */
export function linesOf({ kind, concerns, resolved }: Notification): readonly string[] {
  if (kind === "test") return ["This is a test. Notifications about what needs attention will arrive like this one."];
  const lines = concerns.slice(0, SHOWN).map(({ text, facts }) => {
    const { run } = facts;
    return `- ${oneLine(text)}${run === undefined ? "" : ` [headgate trace ${run}]`}`;
  });
  if (concerns.length > SHOWN)
    lines.push(
      `- and ${concerns.length - SHOWN} more (\`headgate quarantine\` and \`headgate runs --waiting\` list them)`,
    );
  lines.push(...resolved.slice(0, SHOWN).map(({ text }) => `- in order again: ${oneLine(text)}`));
  if (resolved.length > SHOWN) lines.push(`- and ${resolved.length - SHOWN} more in order again`);
  return lines;
}

export function textOf(notification: Notification): string {
  return [titleOf(notification), ...linesOf(notification)].join("\n");
}

export function bodyOf(notification: Notification, format: WebhookReceiverOptions["format"]): string {
  if (format === "slack") return JSON.stringify({ text: slackText(textOf(notification)) });
  if (format === "teams") return JSON.stringify(teamsCard(notification));
  const { concerns, resolved, ...rest } = notification;
  return JSON.stringify({
    ...rest,
    text: textOf(notification),
    total: concerns.length,
    counts: countsOf(concerns),
    items: concerns.slice(0, SHOWN).map(({ kind, text, since, facts }) => ({ kind, text, since, ...facts })),
    resolved: resolved.slice(0, SHOWN).map(({ kind, text }) => ({ kind, text })),
  });
}

/** File names are plain text: neither links nor mentions. */
function slackText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function teamsCard(notification: Notification) {
  const block = (text: string, more: object = {}) => ({ type: "TextBlock", text, wrap: true, ...more });
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      block(titleOf(notification), { weight: "Bolder" }),
      // Markdown would read brackets as links.
      ...linesOf(notification).map((line) => block(line.replace(/[[\]()*_~`]/g, "\\$&"))),
    ],
  };
  return {
    type: "message",
    text: titleOf(notification),
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", content }],
  };
}

function countsOf(concerns: readonly Concern[]): Partial<Record<AttentionKind, number>> {
  const counts: Partial<Record<AttentionKind, number>> = {};
  for (const { kind } of concerns) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/**
 * File names may contain line breaks, and messages of servers may be long. Secrets are masked before the text is cut,
 * since no filter recognizes half of a secret.
 */
export function oneLine(text: string): string {
  const flat = masked(text)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return flat.length > LINE_MAX ? `${flat.slice(0, LINE_MAX - 1)}…` : flat;
}
