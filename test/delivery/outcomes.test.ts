import { expect, it } from "vitest";
import { type OutcomeWebhook, readOutcomeWebhook } from "#gateway/delivery/outcomes.ts";
import { signWebhook } from "#wire/index.ts";

const secret = "a secret that both know";
const nowSeconds = 1_780_000_000;
const told = {
  operationId: "r1-1",
  account: 7,
  received: 5,
  stored: 3,
  replaced: 1,
  discarded: [{ target: "variableId=9", reason: "unknown variable", count: 2 }],
  started: "2026-05-28T20:26:00Z",
  finished: "2026-05-28T20:26:40.5Z",
  somethingNew: true,
};

function received(change: Partial<OutcomeWebhook> = {}, body = JSON.stringify(told)): OutcomeWebhook {
  return { body, signature: signWebhook(body, secret, nowSeconds), secret, nowSeconds, ...change };
}

it("a signed webhook becomes an outcome, ignoring unknown fields", () => {
  expect(readOutcomeWebhook(received())).toEqual({
    account: "7",
    outcome: {
      operationId: "r1-1",
      by: "webhook",
      received: 5,
      stored: 3,
      discarded: [{ target: "variableId=9", reason: "unknown variable", points: 2 }],
      at: "2026-05-28T20:26:40.500Z",
    },
  });
});

it.each<[string, OutcomeWebhook, string]>([
  ["no signature", received({ signature: undefined }), "missing"],
  ["another secret", received({ secret: "another secret" }), "does not match"],
  ["an old signature", received({ nowSeconds: nowSeconds + 3_600 }), "too old"],
  ["changed bytes", received({ body: Buffer.from(JSON.stringify({ ...told, stored: 5 })) }), "does not match"],
  ["another shape", received({}, `{"operationId":"r1-1"}`), "another shape"],
  ["no JSON", received({}, "hello"), "another shape"],
])("a webhook with %s is refused, with the reason", (_, webhook, words) => {
  expect(readOutcomeWebhook(webhook)).toMatchObject({ refused: expect.stringContaining(words) });
});

it("texts of the sender are cut to a readable length", () => {
  const long = "x".repeat(100_000);
  const body = JSON.stringify({ ...told, discarded: [{ target: long, reason: long, count: 2 }] });
  const read = readOutcomeWebhook(received({}, body));
  const [first] = "outcome" in read ? read.outcome.discarded : [];
  for (const text of [first?.target, first?.reason]) expect(text).toMatch(/^x{499}…$/);
});
