import fc from "fast-check";
import { expect, it } from "vitest";
import { CONSEQUENCES, judge, pauseMs, RETRY_TABLE } from "#gateway/delivery/retry-table.ts";

it.each([
  [200, "accepted"],
  [202, "accepted"],
  [301, "address"],
  [400, "bisect"],
  [401, "token"],
  [403, "right"],
  [404, "address"],
  [408, "transient"],
  [409, "transient"],
  [413, "halve"],
  [422, "bisect"],
  [429, "transient"],
  [500, "transient"],
  [599, "transient"],
  [777, "address"],
])("status %i has the verdict %s", (status, verdict) => {
  expect(judge({ status, webPage: false, words: `HTTP ${status}` })).toBe(verdict);
});

it("the service's message distinguishes a repeated operationId with other bytes from refused content", () => {
  const words = "HTTP 422: Unprocessable Content: this Idempotency-Key came before with another body";
  expect(judge({ status: 422, webPage: false, words })).toBe("conflict");
  expect(judge({ status: 400, webPage: false, words })).toBe("bisect");
});

it("every verdict of the table has a consequence, and no rule is shadowed by an earlier one", () => {
  for (const rule of RETRY_TABLE) {
    expect(CONSEQUENCES[rule.verdict]).not.toBe("");
    const reached = Array.from(
      { length: rule.status[1] - rule.status[0] + 1 },
      (_, index) => rule.status[0] + index,
    ).some(
      (status) =>
        rule ===
        RETRY_TABLE.find((one) => status >= one.status[0] && status <= one.status[1] && one.words === rule.words),
    );
    expect(reached).toBe(true);
  }
});

it("pauses grow from half of the first to the longest, never beyond", () => {
  const backoff = { initial: 1_000, max: 300_000 };
  fc.assert(
    fc.property(fc.nat(10_000), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const ms = pauseMs(backoff, failures, random);
      expect(ms).toBeGreaterThanOrEqual(500);
      expect(ms).toBeLessThanOrEqual(300_000);
      expect(pauseMs(backoff, failures + 1, random)).toBeGreaterThanOrEqual(ms);
    }),
  );
});
