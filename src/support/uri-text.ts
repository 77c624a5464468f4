/** The text that percent encoding stands for; a malformed one is returned as it is. */
export function uriDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}
