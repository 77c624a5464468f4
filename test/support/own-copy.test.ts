/** Copies that keep nothing of what they were copied from. */
import { expect, it } from "vitest";
import { ownBytes, ownText } from "#core/own-copy.ts";

it("own bytes have a memory of their own", () => {
  const block = Buffer.from("a,status,b");
  const own = ownBytes(block, 2, 8);
  expect(Buffer.from(own).toString()).toBe("status");
  expect(own.buffer.byteLength).toBe(6);
  block.fill(0);
  expect(Buffer.from(own).toString()).toBe("status");
});

it("an own text is the same text", () => {
  expect(ownText("é😀 ".repeat(9))).toBe("é😀 ".repeat(9));
});
