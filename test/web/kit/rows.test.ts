/** A list in JSON that is read in pieces. */
import { expect, test } from "vitest";
import { readRows } from "#pages/kit/browser/rows.ts";

/** An answer that comes in parts of so many bytes. */
function answerOf(text: string, size: number): Response {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
  return new Response(body);
}

async function read(text: string, size: number): Promise<{ rows: unknown[]; pieces: number }> {
  const rows: unknown[] = [];
  let pieces = 0;
  await readRows(answerOf(text, size), (some) => {
    rows.push(...some);
    pieces += 1;
  });
  return { rows, pieces };
}

test("a long list comes whole and in pieces, wherever the parts of the answer are cut", async () => {
  const rows = Array.from({ length: 12_000 }, (_, at) => ({ value: at / 4, unit: "Ω€", date: `2026-${at}` }));
  for (const size of [1_777, 65_536, 10_000_000]) {
    const found = await read(JSON.stringify(rows), size);
    expect(found.rows).toEqual(rows);
    expect(found.pieces).toBeGreaterThan(2);
  }
});

test("texts that look like the end of a row stay texts", async () => {
  const rows = Array.from({ length: 9_000 }, (_, at) => ({
    tags: { a: '},{"' },
    version: "},{",
    b: `}]${at}`,
    c: "{",
  }));
  expect((await read(JSON.stringify(rows), 30_001)).rows).toEqual(rows);
});

test("an empty list has no rows, and a list that is cut short is refused", async () => {
  expect((await read("[]", 10)).rows).toEqual([]);
  const whole = JSON.stringify(Array.from({ length: 9_000 }, (_, at) => ({ value: at, text: "x".repeat(20) })));
  await expect(read(whole.slice(0, -9), 5_000)).rejects.toThrow(SyntaxError);
  await expect(read("", 5_000)).rejects.toThrow(SyntaxError);
});
