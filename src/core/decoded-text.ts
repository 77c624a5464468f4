/** Texts that may be malformed. */

/** The value of a JSON text; undefined when the text is not JSON, such as one that a power cut has torn. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/** The text that percent encoding stands for; a malformed one is returned as it is. */
export function uriDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}
