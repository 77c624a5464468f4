/** The errors of Fastify in words for those who write clients: what was wrong, and what is accepted. */
import type { FastifyError, FastifyRequest } from "fastify";
import { shownValue } from "#core/shown-value.ts";

const TYPES = [
  "application/json",
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/x-www-form-urlencoded",
  "multipart/form-data",
] as const;

/** An error that has no words here keeps its own. */
export function frameworkWords(thrown: Error & Partial<FastifyError>, request: FastifyRequest): string {
  return WORDS[thrown.code ?? ""]?.(request) ?? thrown.message;
}

const WORDS: Readonly<Record<string, (request: FastifyRequest) => string>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: mediaTypeWords,
  FST_ERR_CTP_BODY_TOO_LARGE: () => "the body is larger than this address accepts",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => "the body is shorter or longer than its Content-Length says",
  FST_ERR_CTP_INVALID_JSON_BODY: () => "the body is not valid JSON",
  FST_ERR_CTP_EMPTY_JSON_BODY: () => "the body is missing",
  FST_ERR_BAD_URL: ({ raw }) =>
    `the path ${shownValue((raw.url ?? "").split("?")[0])} holds a percent sign that begins no character in UTF-8: ` +
    "write a percent sign as %25, and other characters as their bytes in UTF-8",
  FST_ERR_MAX_PARAM_LENGTH: () => "a part of the path is too long",
};

function mediaTypeWords({ headers, server }: FastifyRequest): string {
  const accepted = TYPES.filter((type) => server.hasContentTypeParser(type)).join(" or ");
  const asked = headers["content-type"] ?? "";
  if (asked === "") return accepted === "" ? "Content-Type is missing" : `Content-Type is missing: send ${accepted}`;
  if (accepted === "") return `Content-Type ${shownValue(asked)} is not accepted here`;
  return `Content-Type must be ${accepted}, and not ${shownValue(asked)}`;
}
