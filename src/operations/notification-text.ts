/** The words of a notification, and the bodies of the receivers that there are. */
import type { IsoInstant } from "../model.ts";
import { masked } from "../support/secrets.ts";
import type { Concern } from "./attention.ts";
import type { AttentionKind, WebhookReceiverOptions } from "./options.ts";

export interface Notification {
  readonly kind: "attention" | "test";
  /** The same for a message that is sent again. */
  readonly id: string;
  readonly at: IsoInstant;
  /** Which gateway says so. */
  readonly gateway: string;
  readonly concerns: readonly (Concern & { readonly since: IsoInstant })[];
  /** What was told before and is in order again. */
  readonly resolved: readonly Pick<Concern, "key" | "kind" | "text">[];
}

/** Of each list in one message; the others are counted. */
const SHOWN = 25;
const LINE_MAX = 400;

const WORDS: Readonly<Record<AttentionKind, readonly [one: string, many: string]>> = {
  quarantined: ["file quarantined", "files quarantined"],
  held: ["file held", "files held"],
  discarded: ["file with discarded readings", "files with discarded readings"],
  unconfirmed: ["file unconfirmed", "files unconfirmed"],
  occupied: [
    "changed file that cannot go back to its path",
    "changed files that cannot go back to their paths",
  ],
  late: ["file late", "files late"],
  lane: ["lane waits too long", "lanes wait too long"],
  drop: ["drop cannot be reached", "drops cannot be reached"],
  service: ["service cannot be reached", "services cannot be reached"],
  spool: ["spool nearly full", "spools nearly full"],
};

/** Of a test, which is about nothing. */
export function testNotification(gateway: string, at: IsoInstant): Notification {
  return { kind: "test", id: `test ${at}`, at, gateway, concerns: [], resolved: [] };
}

/** `Headgate on node-1: 3 files quarantined, 1 drop cannot be reached` */
export function titleOf({ kind, gateway, concerns, resolved }: Notification): string {
  if (kind === "test") return `Headgate on ${gateway}: test of the notifications`;
  const counts = Object.entries(countsOf(concerns)).map(
    ([one, count]) => `${count} ${WORDS[one as AttentionKind][count === 1 ? 0 : 1]}`,
  );
  if (counts.length === 0) return `Headgate on ${gateway}: ${resolved.length} in order again`;
  return `Headgate on ${gateway}: ${counts.join(", ")}`;
}

/** The lines below the title. */
export function linesOf({ kind, concerns, resolved }: Notification): readonly string[] {
  if (kind === "test") return ["This is a test. What needs attention will come this way."];
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

/** Names of files are text, and neither links nor mentions. */
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
      // Its Markdown would take brackets for links.
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

/** Names of files may hold line breaks, and messages of servers may be long. */
/** Secrets are masked before it is cut: half of one would be known by nothing. */
export function oneLine(text: string): string {
  const flat = masked(text)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return flat.length > LINE_MAX ? `${flat.slice(0, LINE_MAX - 1)}…` : flat;
}
