/** JSON bodies as clients send them: in UTF-8 or UTF-16, and empty beside a type. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { invalidRequest } from "../../wire/http-problem.ts";

const UTF_16 = /;\s*charset\s*=\s*"?utf-?16(?:le|be)?"?\s*(?:;|$)/i;

/** Some clients name the type of a body with every call, also with a DELETE without a body. */
export function takeJson(app: FastifyInstance, type: string): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser(type, { parseAs: "buffer" }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      void parse(request, String(utf8Of(request, body)), done);
    } catch (thrown) {
      done(thrown as Error);
    }
  });
}

/**
 * The body in UTF-8. Throws a 400. JSON begins with a character of ASCII, so that its first bytes show the order of
 * bytes, and whether a client that names UTF-16 writes it.
 */
export function utf8Of({ headers }: Pick<FastifyRequest, "headers">, body: Buffer): Buffer {
  if (!UTF_16.test(headers["content-type"] ?? "")) return body;
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
