/** Reads mails as a person's program does: headers, and the two forms of the text. */

export interface ReadMail {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly html: string;
}

export function readMail(raw: string): ReadMail {
  const [head = "", ...rest] = raw.replaceAll("\r\n", "\n").split("\n\n");
  const headers = headersOf(head);
  const boundary = /boundary="?([^";]+)"?/.exec(headers["content-type"] ?? "")?.[1] ?? "";
  const parts = rest.join("\n\n").split(`--${boundary}`).map(partOf);
  const of = (type: string) => parts.find((part) => part.type.startsWith(type))?.content ?? "";
  return { headers, text: of("text/plain"), html: of("text/html") };
}

/** The link to a page of the hub. */
export function linkIn({ text }: ReadMail, path: string): string {
  const link = text.split(/\s+/).find((word) => word.startsWith("http") && new URL(word).pathname === path);
  if (link === undefined) throw new Error(`no link to ${path} in:\n${text}`);
  return link;
}

function headersOf(head: string): Record<string, string> {
  const lines = head.replace(/\n[ \t]+/g, " ").split("\n");
  return Object.fromEntries(
    lines.map((line) => [line.split(":")[0]?.toLowerCase() ?? "", line.replace(/^[^:]*: ?/, "")]),
  );
}

function partOf(part: string): { type: string; content: string } {
  const [head = "", ...rest] = part.replace(/^\n/, "").split("\n\n");
  const headers = headersOf(head);
  const encoded = rest.join("\n\n");
  const encoding = headers["content-transfer-encoding"] ?? "";
  return { type: headers["content-type"] ?? "", content: decoded(encoded, encoding) };
}

function decoded(text: string, encoding: string): string {
  if (encoding === "base64") return Buffer.from(text, "base64").toString();
  if (encoding !== "quoted-printable") return text;
  const bytes = text
    .replace(/=\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString();
}
