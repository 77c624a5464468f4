/** What an answer says, for people and for the retry table. */
import { masked } from "../../support/secrets.ts";
import { problem } from "../problem.ts";
import { WARNING_HEADER, WEBHOOK_WARNING } from "../webhook.ts";
import type { HttpAnswer } from "./http.ts";

const WORDS_MAX = 500;

/**
 * `HTTP 400: title: detail (path: message)`; of bodies that are no problem details, the beginning of the text. An answer of another type
 * than JSON, and one that was cut off, are named so.
 */
export function answerWords(answer: HttpAnswer): string {
  const told = problemWords(answer.text) ?? plainText(answer.text);
  const notes = [otherType(answer), answer.cut === "too large" ? "cut off, since it is too large" : null];
  const named = notes.filter((note) => note !== null).join(", ");
  const status = `HTTP ${answer.status}${named === "" ? "" : ` (${named})`}`;
  // Before it is cut: half of a secret would be known by nothing.
  const words = masked(told === "" ? status : `${status}: ${told}`);
  return words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX - 1)}…` : words;
}

function otherType({ headers, text }: HttpAnswer): string | null {
  const type = headers["content-type"]?.split(";")[0]?.trim() ?? "";
  return text === "" || type === "" || /^application\/([\w.-]+\+)?json$/i.test(type)
    ? null
    : type.slice(0, 100);
}

function problemWords(text: string): string | null {
  // Most answers are none, which costs less to see than to have it found.
  if (!text.includes('"title"')) return null;
  const parsed = problem.safeParse(parseJson(text));
  if (!parsed.success) return null;
  const { title, detail, errors } = parsed.data;
  const faults = (errors ?? []).map((fault) => `${fault.path}: ${fault.message}`).join("; ");
  return [title, detail]
    .filter((part) => part !== undefined && part !== "")
    .join(": ")
    .concat(faults === "" ? "" : ` (${faults})`);
}

/** Printable characters of ASCII without a tag, one space between words. */
const PLAIN = /^[!-;=-~]+(?: [!-;=-~]+)*$/;

function plainText(text: string): string {
  if (text === "" || (text.length <= WORDS_MAX && PLAIN.test(text))) return text;
  return text
    .slice(0, 4 * WORDS_MAX)
    .replace(/<(style|script)[\s\S]*?<\/\1>/gi, " ")
    .replace(/<[^>]*>/g, " ")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim();
}

/** Undefined when the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller decides what an answer that is no JSON means.
    return undefined;
  }
}

/** Milliseconds of `Retry-After` in seconds or as an HTTP date (RFC 9110, 10.2.3); null when there is none. */
export function retryAfterMs(headers: HttpAnswer["headers"], now: Temporal.Instant): number | null {
  const text = headers["retry-after"]?.trim();
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now.epochMilliseconds);
}

/** A login page or a proxy's notice where the service should answer. */
export function isWebPage(answer: HttpAnswer): boolean {
  return /^(text\/html|application\/xhtml)/i.test(answer.headers["content-type"] ?? "");
}

const REFUSAL_CHARACTERS_MAX = 300;

/** Of the warnings of an answer to a push, the one about its `webhookUrl`. */
export function webhookRefusalOf(headers: HttpAnswer["headers"]): string | undefined {
  const warnings = headers[WARNING_HEADER] ?? "";
  const at = `; ${warnings}`.indexOf(`; ${WEBHOOK_WARNING}`);
  if (at < 0) return undefined;
  return warnings
    .slice(at + WEBHOOK_WARNING.length)
    .trim()
    .slice(0, REFUSAL_CHARACTERS_MAX);
}
