/**
 * A service that misbehaves on a schedule from a seed. What it refuses for its size or content it always
 * refuses; everything else passes in the end, since a schedule has a limited number of mishaps.
 */
import type { Door } from "./breakable-link.ts";
import type { Interference, Lane, Push, WebhookFate } from "./proxy.ts";

/** Pushes of a variable that is called large with more readings than that are refused with 413. */
const TOO_LARGE = 25;
/** A reading with this value is refused with 400. */
export const REFUSED_VALUE = 666;

function answer(status: number, title: string, retryAfter?: string): Interference {
  const headers = retryAfter === undefined ? {} : { "retry-after": retryAfter };
  return { status, headers, body: JSON.stringify({ title }) };
}

/** As an HTTP date. */
function inASecond(): string {
  return new Date(Date.now() + 1_000).toUTCString();
}

function refuseConnections({ door, ms }: Means): Interference {
  door.shutFor(ms(50, 400));
  return "reset";
}

const MISHAPS: readonly Mishap[] = [
  { name: "refuses connections", weight: 2, play: refuseConnections },
  { name: "resets", weight: 2, play: () => "reset" },
  { name: "hangs", weight: 1, play: () => "hung" },
  { name: "stores and resets", weight: 5, play: () => "lost" },
  { name: "stores and hangs", weight: 1, play: () => "hung after" },
  { name: "429 in seconds", weight: 2, play: () => answer(429, "slow down", "1") },
  { name: "429 until a date", weight: 1, play: () => answer(429, "slow down", inASecond()) },
  { name: "500", weight: 3, play: () => answer(500, "broken") },
  { name: "503 with Retry-After", weight: 1, play: () => answer(503, "busy", "0") },
  { name: "408", weight: 1, play: () => answer(408, "too slow") },
  { name: "401", weight: 3, play: () => answer(401, "the token has expired") },
  { name: "slow", weight: 4, play: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms(50, 500))) },
];
const WEIGHTS = MISHAPS.reduce((sum, { weight }) => sum + weight, 0);
/** Of the calls while the schedule lasts. */
const SHARE = 0.45;

interface Mishap {
  readonly name: string;
  /** How often, beside the others. */
  readonly weight: number;
  /** What is done with the push that meets it. */
  play(means: Means): Interference;
}

interface Means {
  readonly door: Door;
  /** Milliseconds by chance, from the least to the most. */
  ms(least: number, most: number): number;
}

export interface Misbehaviour {
  /** What it did, for a person who looks for the cause of a failure. */
  readonly played: readonly string[];
}

/** `large`: variables whose pushes may be too large. `losesWebhooks`: whether some are thrown away. */
export function misbehave(
  lane: Lane,
  door: Door,
  chance: () => number,
  { large, losesWebhooks }: { readonly large: ReadonlySet<number>; readonly losesWebhooks: boolean },
): Misbehaviour {
  const played: string[] = [];
  let left = 4 + Math.trunc(chance() * 10);
  const means: Means = { door, ms: (least, most) => least + chance() * (most - least) };
  lane.interfere = (push) => {
    const refusal = refuse(push, large);
    if (refusal !== null) return refusal;
    if (left === 0 || chance() >= SHARE) return "pass";
    left -= 1;
    const { name, play } = pick(chance);
    played.push(`${name}: ${push.operationId}`);
    return play(means);
  };
  lane.failToken = () => left > 0 && chance() < 0.05;
  lane.fateOfWebhook = () => fate(chance(), losesWebhooks);
  return { played };
}

function refuse(push: Push, large: ReadonlySet<number>): Interference | null {
  const elements = JSON.parse(push.body) as { variableId: number; data: { value: number }[] }[];
  if (elements.some(({ variableId, data }) => large.has(variableId) && data.length > TOO_LARGE))
    return answer(413, "too large");
  if (elements.some(({ data }) => data.some(({ value }) => value === REFUSED_VALUE)))
    return answer(400, "an impossible value");
  return null;
}

function pick(chance: () => number): (typeof MISHAPS)[number] {
  let at = chance() * WEIGHTS;
  for (const mishap of MISHAPS) {
    at -= mishap.weight;
    if (at < 0) return mishap;
  }
  throw new Error("the weights of the mishaps do not add up");
}

function fate(at: number, loses: boolean): WebhookFate {
  if (at < 0.15) return loses ? "lost" : "late";
  if (at < 0.3) return "doubled";
  return at < 0.45 ? "late" : "passed";
}
