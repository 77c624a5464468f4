/** JSON bodies as clients send them: in UTF-8, UTF-16 or a Western character set, and empty beside a type. */
import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import { jsonFault, jsonFaultWords } from "#wire/json-fault.ts";

const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i;
const UTF_8 = /^utf-?8$/i;
const UTF_16 = /^utf-?16(?:le|be)?$/i;
/** Names of character sets with one byte a character, as clients write them, and the one that reads each. */
const SINGLE_BYTE: ReadonlyMap<string, string> = new Map([
  ["us-ascii", "windows-1252"],
  ["ascii", "windows-1252"],
  ["iso-8859-1", "windows-1252"],
  ["iso8859-1", "windows-1252"],
  ["latin1", "windows-1252"],
  ["windows-1252", "windows-1252"],
  ["cp1252", "windows-1252"],
  ["iso-8859-15", "iso-8859-15"],
]);

/** Some clients name the type of a body with every call, also with a DELETE without a body. */
export function takeJson(app: FastifyInstance, type: string): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser(type, { parseAs: "buffer" }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      const bytes = utf8Of(request, body);
      if (!isUtf8(bytes)) throw invalidRequest("the body is not valid JSON: it is not UTF-8");
      const text = bytes.toString("utf8").replace(/^\ufeff/, "");
      void parse(request, text, (thrown, value) =>
        thrown === null ? done(null, value) : done(invalidRequest(`the body is not valid JSON: ${faultOf(text)}`)),
      );
    } catch (thrown) {
      done(thrown as Error);
    }
  });
}

/** The parser also refuses names by which a client would change the objects of the program. */
function faultOf(text: string): string {
  if (jsonFault(text) !== null) return jsonFaultWords(text);
  return 'a field is named "__proto__", or "constructor" with "prototype" in it, and no field may have such a name';
}

/**
 * The body in UTF-8; one without a charset, or that names UTF-8, as it came. Throws a 400, or a 415 for a charset that
 * is not known.
 */
export function utf8Of({ headers }: Pick<FastifyRequest, "headers">, body: Buffer): Buffer {
  const charset = CHARSET.exec(headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (UTF_8.test(charset)) return body;
  if (UTF_16.test(charset)) return utf8OfUtf16(body);
  const reader = SINGLE_BYTE.get(charset.toLowerCase());
  if (reader === undefined)
    throw new HttpProblem(
      415,
      "unsupported-media-type",
      `the charset ${charset.slice(0, 60)} of the Content-Type is not known here: send the body in UTF-8`,
    );
  // Text in such a character set is hardly ever valid UTF-8 by chance; some clients name one and send UTF-8.
  return isUtf8(body) ? body : Buffer.from(new TextDecoder(reader).decode(body));
}

/**
 * JSON begins with a character of ASCII, so that its first bytes show the order of bytes, and whether a client that
 * names UTF-16 writes it.
 */
function utf8OfUtf16(body: Buffer): Buffer {
  const [first, second] = body;
  const isBigEndian = first === 0 || (first === 0xfe && second === 0xff);
  if (!isBigEndian && second !== 0 && !(first === 0xff && second === 0xfe)) return body;
  try {
    return Buffer.from(new TextDecoder(isBigEndian ? "utf-16be" : "utf-16le", { fatal: true }).decode(body));
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw invalidRequest("the body is not in the UTF-16 that its Content-Type names: it ends in half of a character");
  }
}
