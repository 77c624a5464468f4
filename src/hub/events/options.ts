import { z } from "zod";
import { duration } from "#core/quantities.ts";

export const eventOptions = z.strictObject({
  subscriptions: z.int().positive().default(100).describe("Subscriptions of one account at most; 100 by default."),
  pauseAfter: duration("1d").describe(
    "How long a receiver may fail, `webhook.attempts` times at least, before its subscription is paused until a " +
      "person resumes it; 1d by default.",
  ),
});
