/** The value of a response of the read and management interface, or the error that the response means. */
import type { z } from "zod";
import { parsedJson } from "#core/decoded-text.ts";
import { ConfigError, RejectedError, TransientError } from "#core/errors.ts";
import { answerWords } from "./answers.ts";
import type { HttpAnswer } from "./http.ts";

export const READ_ANSWER_MAX = 32 * 1024 ** 2;

/** Throws `TransientError` when the call may succeed later. */
export function readAnswer<Value>(
  answer: HttpAnswer,
  schema: z.ZodType<Value>,
  facts: { readonly operation: string; readonly subject: string },
): Value {
  const { operation } = facts;
  const { status } = answer;
  if (status >= 500 || status === 429 || status === 408 || answer.cut === "broken off")
    throw new TransientError("HG-PUSH-001", {
      ...facts,
      message: `${operation} answered ${answerWords(answer)}`,
    });
  if (status === 403)
    throw new ConfigError("HG-PUSH-008", {
      ...facts,
      message: `${operation} answered ${answerWords(answer)}`,
    });
  if (status < 200 || status > 299 || answer.cut !== null)
    throw new RejectedError("HG-PUSH-010", {
      ...facts,
      message:
        `${operation} answered ` +
        `${answer.cut === null ? answerWords(answer) : `more than ${READ_ANSWER_MAX} bytes`}`,
    });
  const parsed = schema.safeParse(parsedJson(answer.text));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new ConfigError("HG-PUSH-009", {
    ...facts,
    message: `${operation} gave an answer of another shape: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`,
  });
}
