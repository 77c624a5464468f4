/** Encodings beside UTF-8, by iconv-lite, which is loaded for the first file that names one: most never do. */
import { createRequire } from "node:module";
import type Iconv from "iconv-lite";

type Encodings = Pick<typeof Iconv, "encodingExists" | "getDecoder" | "decode">;

const require = createRequire(import.meta.url);
let loaded: Encodings | undefined;

export function encodings(): Encodings {
  loaded ??= require("iconv-lite") as Encodings;
  return loaded;
}
