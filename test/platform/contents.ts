/** Contents of files that tests have the hub take. */
import { buffer } from "node:stream/consumers";
import ExcelJS from "exceljs";
import { ZipFile } from "yazl";

export async function workbook(rows: readonly (readonly (string | number)[])[]): Promise<Uint8Array<ArrayBuffer>> {
  const book = new ExcelJS.Workbook();
  book.addWorksheet("Sheet1").addRows(rows.map((row) => [...row]));
  return new Uint8Array(await book.xlsx.writeBuffer());
}

export async function zip(files: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  const archive = new ZipFile();
  for (const [name, content] of Object.entries(files)) archive.addBuffer(Buffer.from(content), name);
  archive.end();
  return new Uint8Array(await buffer(archive.outputStream));
}
