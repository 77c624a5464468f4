/** The encoding of an XML document without a byte order mark (XML 1.0, appendix F). */
import type { Input } from "./decode.ts";
import { fileHead } from "./file-head.ts";

/** Bytes within which the XML declaration must be. */
const DECLARATION_BYTES = 1024;

/**
 * Returns the encoding that the mapper declares, otherwise that of the document. A byte order mark overrides
 * both; the decoder handles it.
 */
export async function xmlEncoding(input: Input, declared?: string): Promise<string> {
  if (declared !== undefined) return declared;
  const head = input.small?.subarray(0, DECLARATION_BYTES) ?? (await fileHead(input.path, DECLARATION_BYTES));
  if (head.length >= 4 && head.readUInt32BE(0) === 0x003c003f) return "utf-16be";
  if (head.length >= 4 && head.readUInt32BE(0) === 0x3c003f00) return "utf-16le";
  const [, named] =
    /^(?:\ufeff|\xef\xbb\xbf)?<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z][\w.:-]*)["']/.exec(head.toString("latin1")) ??
    [];
  // A declaration that is readable as bytes is not UTF-16: some programs name their encoding in memory, and
  // not that of the file.
  return named === undefined || /^(?:utf-?16|ucs-?[24]|utf-?32)/i.test(named) ? "utf-8" : named;
}
