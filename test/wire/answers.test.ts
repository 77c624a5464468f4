import { expect, test } from "vitest";
import { keepSecret } from "#core/secrets.ts";
import { webhookRefusalOf } from "#wire/client/answers.ts";
import { WARNING_HEADER, WEBHOOK_WARNING } from "#wire/webhook.ts";

test("the refusal of a webhook is masked before it is cut, so that no part of a secret is left", () => {
  keepSecret("a-secret-of-the-webhook");
  const plain = webhookRefusalOf({ [WARNING_HEADER]: `${WEBHOOK_WARNING} ${"x".repeat(5_000)}` }) ?? "";
  expect(plain.length).toBeGreaterThan(0);
  const fill = "x".repeat(plain.length - 10);
  const refusal = webhookRefusalOf({ [WARNING_HEADER]: `${WEBHOOK_WARNING} ${fill}a-secret-of-the-webhook` });
  expect(refusal).not.toContain("a-sec");
});
