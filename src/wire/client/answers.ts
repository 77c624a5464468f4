/** Text and meaning of a response, for people and for the retry table. */

import { masked } from "#core/secrets.ts";
import { parsedJson } from "#core/text.ts";
import { problem } from "../problem.ts";
import { REPLAYED_HEADER } from "../push-request.ts";
import { WARNING_HEADER, WEBHOOK_WARNING } from "../webhook.ts";
import type { HttpAnswer } from "./http.ts";

const WORDS_MAX = 500;

/**
 * `HTTP 400: title: detail (path: message)`; for bodies other than problem details, the beginning of the text. A
 * response of another type than JSON, or one that was cut off, is named as such.
 */
export function answerWords(answer: HttpAnswer): string {
  const detail = problemWords(answer.text) ?? plainText(answer.text);
  const notes = [otherType(answer), answer.cut === "too large" ? "cut off, since it is too large" : null];
  const named = notes.filter((note) => note !== null).join(", ");
  const status = `HTTP ${answer.status}${named === "" ? "" : ` (${named})`}`;
  // Masked before the text is cut: masking does not recognise half of a secret.
  const words = masked(detail === "" ? status : `${status}: ${detail}`);
  return words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX - 1)}…` : words;
}

function otherType({ headers, text }: HttpAnswer): string | null {
  const type = headers["content-type"]?.split(";")[0]?.trim() ?? "";
  return text === "" || type === "" || /^application\/([\w.-]+\+)?json$/i.test(type) ? null : type.slice(0, 100);
}

function problemWords(text: string): string | null {
  // Most responses are not problem details; a text search is cheaper than parsing.
  if (!text.includes('"title"')) return null;
  const parsed = problem.safeParse(parsedJson(text));
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

/** Milliseconds of `Retry-After` in seconds or as an HTTP date (RFC 9110, 10.2.3); null when there is none. */
export function retryAfterMs(headers: HttpAnswer["headers"], now: Temporal.Instant): number | null {
  const text = headers["retry-after"]?.trim();
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now.epochMilliseconds);
}

/** A login page or a proxy's notice in place of the service. */
export function isWebPage(answer: HttpAnswer): boolean {
  return /^(text\/html|application\/xhtml)/i.test(answer.headers["content-type"] ?? "");
}

const REFUSAL_CHARACTERS_MAX = 300;

/** The warning about the `webhookUrl` among the warnings of a response to a push. */
export function webhookRefusalOf(headers: HttpAnswer["headers"]): string | undefined {
  const warnings = headers[WARNING_HEADER] ?? "";
  const at = `; ${warnings}`.indexOf(`; ${WEBHOOK_WARNING}`);
  if (at < 0) return undefined;
  // Masked before it is cut, so that no part of a secret is left at the end.
  return masked(warnings.slice(at + WEBHOOK_WARNING.length).trim()).slice(0, REFUSAL_CHARACTERS_MAX);
}

const OPERATION_ID_MAX = 400;

/** Of a push: the operation whose answer is repeated, empty where the body does not name it. */
export function repeatedBy({ status, headers, text }: HttpAnswer): string | undefined {
  if (status >= 300 || headers[REPLAYED_HEADER] !== "true") return undefined;
  const body: unknown = parsedJson(text);
  const named = typeof body === "object" && body !== null && "operationId" in body ? body.operationId : "";
  return typeof named === "string" ? masked(named).slice(0, OPERATION_ID_MAX) : "";
}
