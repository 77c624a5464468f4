/** Writes archives as senders do, and as nobody should. */
import { crc32, deflateRawSync } from "node:zlib";

export interface Packed {
  readonly name: string;
  readonly content?: string | Buffer;
  /** Its own time, as the archive has it; in UTC, although an archive names no zone. */
  readonly at?: Date;
  readonly encrypted?: boolean;
  readonly symbolicLink?: boolean;
  /** The bytes of the name instead of its UTF-8. */
  readonly nameBytes?: Buffer;
  /** Whether the archive says that the name is UTF-8; it does unless told otherwise. */
  readonly flagged?: boolean;
  /** Instead of deflated. */
  readonly stored?: boolean;
  /** A method that nobody knows. */
  readonly method?: number;
  /** What the archive says of the entry, instead of the truth. */
  readonly claims?: { readonly size?: number; readonly crc32?: number };
  /** This many entries of the directory show the same bytes. */
  readonly shownTimes?: number;
}

const UTF8 = 0x0800;
const ENCRYPTED = 0x0001;
const UNIX_3_0 = 0x031e;

/** PKWARE APPNOTE 4.3, without ZIP64. */
export function zip(entries: readonly Packed[]): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  let count = 0;
  for (const entry of entries) {
    const { local, central } = pack(entry, offset);
    bodies.push(local);
    offset += local.length;
    for (let nth = 0; nth < (entry.shownTimes ?? 1); nth += 1) {
      directory.push(central(nth === 0 ? entry.name : `${nth}-${entry.name}`));
      count += 1;
    }
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, ...directory, end]);
}

function pack(entry: Packed, offset: number) {
  const content = Buffer.from(entry.content ?? "");
  const folder = entry.name.endsWith("/");
  const method = entry.method ?? (entry.stored === true || folder ? 0 : 8);
  const body = method === 8 ? deflateRawSync(content) : content;
  const facts = Buffer.alloc(20);
  facts.writeUInt16LE((entry.flagged === false ? 0 : UTF8) | (entry.encrypted === true ? ENCRYPTED : 0), 0);
  facts.writeUInt16LE(method, 2);
  if (entry.at !== undefined) {
    facts.writeUInt16LE((entry.at.getUTCHours() << 11) | (entry.at.getUTCMinutes() << 5), 4);
    const month = (entry.at.getUTCMonth() + 1) << 5;
    facts.writeUInt16LE(((entry.at.getUTCFullYear() - 1980) << 9) | month | entry.at.getUTCDate(), 6);
  }
  facts.writeUInt32LE(entry.claims?.crc32 ?? crc32(content), 8);
  facts.writeUInt32LE(body.length, 12);
  facts.writeUInt32LE(entry.claims?.size ?? content.length, 16);
  const name = entry.nameBytes ?? Buffer.from(entry.name);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(20, 4);
  facts.copy(local, 6);
  local.writeUInt16LE(name.length, 26);
  const central = (shown: string) => {
    const record = Buffer.alloc(46);
    record.writeUInt32LE(0x02014b50, 0);
    record.writeUInt16LE(UNIX_3_0, 4);
    record.writeUInt16LE(20, 6);
    facts.copy(record, 8);
    const shownBytes = entry.nameBytes ?? Buffer.from(shown);
    record.writeUInt16LE(shownBytes.length, 28);
    record.writeUInt32LE(((entry.symbolicLink === true ? 0o120777 : 0o100644) << 16) >>> 0, 38);
    record.writeUInt32LE(offset, 42);
    return Buffer.concat([record, shownBytes]);
  };
  return { local: Buffer.concat([local, name, body]), central };
}
