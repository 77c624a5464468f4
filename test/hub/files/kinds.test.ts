import { expect, test } from "vitest";
import { kindOf } from "#hub/files/kinds.ts";

const latin1 = (text: string) => Buffer.from(text, "latin1");

test.each([
  ["a.pdf", latin1("%PDF-1.7"), "Pdf", "application/pdf"],
  ["named.txt", latin1("%PDF-1.7"), "Pdf", "application/pdf"],
  ["a.png", latin1("\x89PNG\r\n\x1a\n\0\0"), "Image", "image/png"],
  ["a.jpg", latin1("\xff\xd8\xff\xe0"), "Image", "image/jpeg"],
  ["a.svg", Buffer.from("<?xml version='1.0'?><svg/>"), "Image", "image/svg+xml"],
  ["a.zip", latin1("PK\x03\x04 day.csv"), "Archive", "application/zip"],
  ["a.csv.gz", latin1("\x1f\x8b\x08"), "Archive", "application/gzip"],
  ["a.tar", Buffer.concat([Buffer.alloc(257), Buffer.from("ustar")]), "Archive", "application/x-tar"],
  [
    "a.xlsx",
    latin1("PK\x03\x04 [Content_Types].xml xl/workbook.xml"),
    "Excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  ],
  [
    "a.docx",
    latin1("PK\x03\x04 [Content_Types].xml"),
    "Word",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ],
  ["a.xls", latin1("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "Excel", "application/vnd.ms-excel"],
  ["a.doc", latin1("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "Word", "application/msword"],
  ["a.csv", Buffer.from("date,value\n"), "Text", "text/csv; charset=utf-8"],
  ["a.csv", latin1("Z\xe4hler,value\n"), "Text", "text/csv"],
  ["a.json", Buffer.from("{}"), "Text", "application/json"],
  ["a.html", Buffer.from("<!doctype html>"), "Text", "text/plain; charset=utf-8"],
  ["a", Buffer.from("\ufeffa", "utf16le"), "Text", "text/plain; charset=utf-16"],
  // The head ends in the middle of a character.
  ["a.txt", Buffer.from("aä").subarray(0, 2), "Text", "text/plain; charset=utf-8"],
  ["a.csv", Buffer.from([1, 2, 3, 0]), "Data", "application/octet-stream"],
  // Names that every object has.
  ["a.constructor", Buffer.from("text"), "Text", "text/plain; charset=utf-8"],
  ["a.__proto__", Buffer.from("text"), "Text", "text/plain; charset=utf-8"],
  ["a.constructor", latin1("PK\x03\x04 day.csv"), "Archive", "application/zip"],
  // Folders whose names only end like those of a document.
  ["a.zip", latin1(`PK\x03\x04${"-".repeat(26)}password/day.csv`), "Archive", "application/zip"],
  ["a.zip", latin1(`PK\x03\x04${"-".repeat(26)}pixl/day.csv`), "Archive", "application/zip"],
  [
    "a",
    latin1(`PK\x03\x04${"-".repeat(26)}word/document.xml`),
    "Word",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ],
] as const)("%s with the first bytes %j is of kind %s", (name, head, cloudItemTypeId, contentType) => {
  expect(kindOf(head, name)).toEqual({ cloudItemTypeId, contentType });
});
