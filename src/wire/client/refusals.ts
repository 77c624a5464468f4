/** Errors for calls whose authorization the service refused. */
import { ConfigError } from "#core/errors.ts";
import { answerWords } from "./answers.ts";
import type { HttpAnswer, HttpCall } from "./http.ts";
import type { Token } from "./token.ts";

/** The token is new and so has not expired: either a scope is missing, or the service does not know its issuer. */
export function refusedToken(
  answer: HttpAnswer,
  { token, scope, subject }: { readonly token: Token; readonly scope: string; readonly subject: string },
): ConfigError {
  const missing = token.scopes !== null && !token.scopes.includes(scope);
  const granted = token.scopes === null ? "" : ` (granted: ${token.scopes.join(" ") || "none"})`;
  return new ConfigError("HG-PUSH-007", {
    operation: "authorise",
    subject,
    message: missing
      ? `scope ${scope} missing: the token was granted without it${granted}; ${answerWords(answer)}`
      : `a new token was refused as well, so it has not expired: scope ${scope} missing${granted}, or ` +
        `a token of another issuer; ${answerWords(answer)}`,
    hint:
      `Add ${scope} to the service's \`scopes\`, have the client granted it, and check that \`token\` ` +
      "belongs to this service.",
  });
}

export function refusedPassword(
  answer: HttpAnswer,
  { method, path }: Pick<HttpCall, "method" | "path">,
  subject: string,
): ConfigError {
  return new ConfigError("HG-PUSH-003", {
    operation: `${method} ${path.split("?", 1)[0]}`,
    subject,
    message: `the service refuses user and password: ${answerWords(answer)}`,
  });
}
