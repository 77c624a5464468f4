/** Errors of the object storage in our words: a missing object, what a person corrects, and what may pass by itself. */
import { S3ServiceException } from "@aws-sdk/client-s3";
import { ConfigError, HeadgateError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { startFault } from "#core/start-fault.ts";

const SERVER_FAULT = 500;
/** Names of the server's errors that a setting causes. */
const SETTINGS: readonly (readonly [setting: string, said: RegExp])[] = [
  ["`files.bucket`", /^(NoSuchBucket|InvalidBucketName|PermanentRedirect)$/],
  ["`files.region`", /^(AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/],
  [
    "`files.accessKeyId` and `files.secretAccessKey`",
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|AccountProblem|Forbidden)$/,
  ],
];

export function isMissing(thrown: unknown): boolean {
  if (!(thrown instanceof S3ServiceException)) return false;
  return ["NoSuchKey", "NotFound", "NoSuchUpload"].includes(thrown.name);
}

/** For a call of a running hub: it is tried again. */
export function passingFault(operation: string, subject: string, cause: unknown): HeadgateError {
  if (cause instanceof HeadgateError) return cause;
  const message = `the object storage of the stored files failed: ${faultWords(cause)}`;
  return new TransientError("HG-HUB-010", { operation, subject, message, cause });
}

/** For the first calls, at the start of a hub. */
export function openingFault(subject: string, thrown: unknown): HeadgateError {
  if (thrown instanceof ConfigError) return thrown;
  const cause = thrown instanceof HeadgateError ? thrown.cause : thrown;
  const common = { operation: "open stored files", subject, cause };
  const message = `the object storage of the stored files cannot be used: ${faultWords(cause)}`;
  if (!(cause instanceof S3ServiceException)) {
    const hint = "Check `files.endpoint`, and whether this machine reaches it.";
    if (isTimeout(cause)) return new TransientError("HG-HUB-010", { ...common, message, hint });
    return startFault("HG-HUB-010", { ...common, message, hint });
  }
  if ((cause.$metadata.httpStatusCode ?? 0) >= SERVER_FAULT)
    return new TransientError("HG-HUB-010", { ...common, message });
  const setting = SETTINGS.find(([, said]) => said.test(cause.name))?.[0];
  const hint = setting === undefined ? "Check the settings below `files`." : `Correct ${setting}.`;
  return new ConfigError("HG-HUB-010", { ...common, message, hint });
}

function faultWords(thrown: unknown): string {
  return thrown instanceof S3ServiceException ? `${thrown.name}: ${wordsOf(thrown)}` : wordsOf(thrown);
}

function isTimeout(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "TimeoutError" || systemCode(thrown) === "ETIMEDOUT");
}
