/** Limits of the connections of each HTTP server. */
import { z } from "zod";
import { duration } from "./quantities.ts";

export const httpOptions = z
  .strictObject({
    connections: z
      .int()
      .positive()
      .default(1_000)
      .describe("Connections at one time; further ones are closed at once, and the log says so. 1000 by default."),
    headers: duration("20s").describe(
      "How long the headers of a request may take, and a connection may stay open before its first; 20s by default.",
    ),
    idle: duration("60s").describe(
      "A body that stalls for so long is answered by 408, and a client that reads nothing of a response for " +
        "so long is disconnected. The time that a body takes as a whole has no limit. 60s by default.",
    ),
    bytesPerSecond: z
      .int()
      .nonnegative()
      .default(200)
      .describe(
        "A body that takes longer than `idle` has to arrive so fast on average, or it is answered by 408; 0: " +
          "at any pace. 200 by default.",
      ),
    keepAlive: duration("72s").describe("How long a connection waits for its next request; 72s by default."),
  })
  .prefault({})
  .describe("Limits of connections, so that stalled clients cannot keep others out.");
export type HttpLimits = z.output<typeof httpOptions>;
