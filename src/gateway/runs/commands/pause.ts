/** Pauses a drop or a trigger, and resumes it. */
import { z } from "zod";
import { command } from "./command.ts";

const fields = { kind: z.enum(["drop", "trigger"]), name: z.string() };

export const pause = command(fields, async ({ kind, name, by, why }, { pauses, live }) => {
  const set = await pauses.set({ kind, name, by, why });
  if (kind === "drop") live?.dropChanged(name);
  return set;
});

export const resume = command(fields, async ({ kind, name }, { pauses, live }) => {
  const wasPaused = await pauses.end(kind, name);
  if (kind === "drop") live?.dropChanged(name);
  else live?.triggersChanged();
  return { wasPaused };
});
