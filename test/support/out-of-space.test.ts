import { expect, test } from "vitest";
import { isOutOfSpace, TransientError } from "#core/errors.ts";
import { isFullDisk } from "#core/sql/trouble.ts";

test("a full disk is found below an error that has a code of its own", () => {
  const cause = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  const facts = { operation: "write", subject: "a file", message: "it cannot be written", cause };
  const thrown = new TransientError("HG-MAP-016", facts);
  expect([isOutOfSpace(thrown), isFullDisk(thrown)]).toEqual([true, true]);
  expect([isOutOfSpace(new Error("other")), isFullDisk(Object.assign(new Error(), { code: "53100" }))]).toEqual([
    false,
    true,
  ]);
});
