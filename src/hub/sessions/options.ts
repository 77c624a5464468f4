/** Settings of the sessions of browsers (`sessions` of hub.yaml). */
import { z } from "zod";
import { duration } from "#core/quantities.ts";

export const sessionOptions = z.strictObject({
  idle: duration("8h").describe("A session ends when its browser was not used for this long; 8h by default."),
  lifetime: duration("7d").describe("A session ends this long after the sign-in, however it is used; 7d by default."),
});

export type SessionOptions = z.infer<typeof sessionOptions>;
