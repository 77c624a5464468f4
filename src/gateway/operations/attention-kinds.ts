/** The kinds of concerns: runs by their state, and what else needs a person. */
import { ATTENTION_STATES } from "../states.ts";

export const ATTENTION_KINDS = [
  ...ATTENTION_STATES,
  "unmatched",
  "finish",
  "occupied",
  "late",
  "lane",
  "drop",
  "service",
  "trigger",
  "paused",
  "spool",
  "configuration",
] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];
