/**
 * A file trigger as a service lists it (specification, *Stored file record and file trigger*). The field that names the
 * mapper is not shown there: it is `mapping`. Unknown fields are ignored, and so is a field that is null.
 */
import { z } from "zod";
import { anyCase, caseless } from "./caseless.ts";
import { FILTER_TYPES, INGESTION_TYPES, TRIGGER_COMBINATIONS, TRIGGER_STATES, TRIGGER_TYPES } from "./trigger.ts";

/** An object, or its JSON text. */
const settings = z.preprocess(
  (input) => {
    if (typeof input !== "string") return input;
    if (input.trim() === "") return {};
    try {
      return JSON.parse(input);
    } catch {
      // The schema refuses the text.
      return input;
    }
  },
  z.record(z.string(), z.unknown()),
);

/** An empty text stands for a field without a value. */
const optionalText = z
  .string()
  .transform((text) => text.trim() || undefined)
  .optional();

export const listedTrigger = caseless(
  z.object({
    id: z.union([z.int(), z.string().min(1)]).transform(String),
    name: optionalText,
    fileType: optionalText,
    ingestionType: anyCase(INGESTION_TYPES),
    triggerType: anyCase(TRIGGER_TYPES).default("Added"),
    fileNamePatternMatches: z
      .array(caseless(z.object({ filterType: anyCase(FILTER_TYPES), value: z.string().min(1) })))
      .default([]),
    fileTriggerCombination: anyCase(TRIGGER_COMBINATIONS).default("And"),
    state: anyCase(TRIGGER_STATES),
    token: optionalText,
    mapping: optionalText,
    metadata: settings.default({}),
  }),
);
export type ListedTrigger = z.output<typeof listedTrigger>;
