/** Units as authors of logger programs write them: free text, with some common spellings. */

const SPELLINGS: Readonly<Record<string, string>> = {
  c: "°C",
  degc: "°C",
  "deg c": "°C",
  deg_c: "°C",
  celsius: "°C",
  f: "°F",
  degf: "°F",
  "deg f": "°F",
  deg_f: "°F",
  k: "K",
  degk: "K",
  v: "V",
  volts: "V",
  volt: "V",
  mv: "mV",
  mvolts: "mV",
  ma: "mA",
  amps: "A",
  deg: "°",
  degrees: "°",
  percent: "%",
  "% rh": "%RH",
  "w/m^2": "W/m²",
  "w/m2": "W/m²",
  "wm-2": "W/m²",
  "watts/meter^2": "W/m²",
  "kw/m^2": "kW/m²",
  "mj/m^2": "MJ/m²",
  "mj/m2": "MJ/m²",
  "m/s": "m/s",
  "ms-1": "m/s",
  "meters/second": "m/s",
  meters: "m",
  "km/h": "km/h",
  mph: "mph",
  kpa: "kPa",
  hpa: "hPa",
  mbar: "mbar",
  mb: "mbar",
};

/** The symbol of a unit; an unknown unit stays as it is. */
export function symbolOf(text: string, own: Readonly<Record<string, string>>): string {
  const trimmed = text.trim();
  if (Object.hasOwn(own, trimmed)) return own[trimmed] ?? trimmed;
  const key = trimmed.toLowerCase();
  return Object.hasOwn(SPELLINGS, key) ? (SPELLINGS[key] ?? trimmed) : trimmed;
}
