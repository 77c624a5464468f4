/** The colours of all pages, by day and by night; a test computes the contrast of each pair. */

export interface Palette {
  readonly ground: string;
  readonly surface: string;
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  /** Outlines of fields and buttons. */
  readonly edge: string;
  readonly accent: string;
  readonly onAccent: string;
  readonly danger: string;
  readonly onDanger: string;
  readonly dangerGround: string;
  readonly success: string;
  readonly successGround: string;
  readonly warning: string;
  readonly warningGround: string;
}

export const LIGHT: Palette = {
  ground: "#f5f6f8",
  surface: "#ffffff",
  text: "#1a1e24",
  muted: "#535c68",
  line: "#d9dde3",
  edge: "#7d8794",
  accent: "#0a5a9c",
  onAccent: "#ffffff",
  danger: "#a8201a",
  onDanger: "#ffffff",
  dangerGround: "#fdeeed",
  success: "#176034",
  successGround: "#e9f6ee",
  warning: "#744600",
  warningGround: "#fff4dc",
};

export const DARK: Palette = {
  ground: "#13161a",
  surface: "#1c2026",
  text: "#e7eaee",
  muted: "#abb3be",
  line: "#343b45",
  edge: "#7f8a98",
  accent: "#82bdf7",
  onAccent: "#0c1826",
  danger: "#ff9d94",
  onDanger: "#2b0907",
  dangerGround: "#3a1a19",
  success: "#86d7a2",
  successGround: "#15301f",
  warning: "#f2c877",
  warningGround: "#352a12",
};

/** Text, and the ground that it stands on: 4.5 to 1 at least. */
export const TEXT_PAIRS: readonly (readonly [keyof Palette, keyof Palette])[] = [
  ["text", "ground"],
  ["text", "surface"],
  ["muted", "ground"],
  ["muted", "surface"],
  ["accent", "ground"],
  ["accent", "surface"],
  ["onAccent", "accent"],
  ["danger", "surface"],
  ["danger", "ground"],
  ["onDanger", "danger"],
  ["text", "dangerGround"],
  ["danger", "dangerGround"],
  ["text", "successGround"],
  ["success", "successGround"],
  ["text", "warningGround"],
  ["warning", "warningGround"],
];

/** Outlines that show where a control is, and focus: 3 to 1 at least. */
export const OUTLINE_PAIRS: readonly (readonly [keyof Palette, keyof Palette])[] = [
  ["edge", "ground"],
  ["edge", "surface"],
  ["accent", "surface"],
  ["accent", "ground"],
];

/** Contrast of two colours by WCAG 2: 1 to 21. */
export function contrastOf(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
