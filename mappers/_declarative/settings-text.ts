/** Settings with a small syntax of their own, with their faults as text. */
import { z } from "headgate/mapper";
import { parseTemplate } from "./template-parts.ts";

const text = z.string().min(1);

/** A text in which names in braces are replaced by cells. */
export const templateText = text.superRefine((value, check) => {
  const parsed = parseTemplate(value);
  if (typeof parsed === "string") check.addIssue({ code: "custom", message: parsed });
});

/** A regular expression as text. */
export const pattern = text.superRefine((value, check) => {
  try {
    new RegExp(value, "u");
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    check.addIssue({ code: "custom", message: `it is no regular expression: ${why}` });
  }
});
