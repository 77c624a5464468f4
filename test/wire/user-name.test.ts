import { expect, test } from "vitest";
import { readAs, userNameFault } from "#wire/user.ts";

test.each([
  ...["ada", "Ada Lovelace", "ada@example.org", "DOMAIN\\ada", "o'neill-2", "Zoë", "Zoe\u0308", "Łukasz", "straße"],
  ...["иван", "иван@example.org", "Ελένη", "田中さくら", "田中taro", "김철수", "محمد", "राम", "አበበ", "4711"],
])("%j is a good name", (name) => {
  expect(userNameFault(name)).toBeNull();
});

test.each([
  ["ad\u200bmin", "U+200B"],
  ["admin\u202e", "U+202E"],
  ["ad\u00admin", "U+00AD"],
  ["admin\ufe0f", "U+FE0F"],
  ["ad\u2066min", "U+2066"],
  ["ad\tmin", "U+0009"],
  ["ad\u00a0min", "U+00A0"],
  ["ad\u3164min", "U+3164"],
  ["admin\u{e0041}", "U+E0041"],
  ["ad\ue000min", "U+E000"],
  ["ａdmin", "write admin"],
  ["ﬁn", "write fin"],
  ["аdmin", "several scripts"],
  ["op\u0435rator", "several scripts"],
  ["me@ex\u0430mple.org", "several scripts"],
  ["αlpha", "several scripts"],
  ["иванa", "several scripts"],
])("%j is none: %s", (name, why) => {
  expect(userNameFault(name)).toContain(why);
});

test.each([
  ["сосо", "coco"],
  ["ОРЕ", "ope"],
  ["ıvo", "ivo"],
  ["иван", "иbah"],
  ["ada", "ada"],
])("%j may be read as %j", (name, read) => {
  expect(readAs(name)).toBe(read.normalize("NFC"));
});
