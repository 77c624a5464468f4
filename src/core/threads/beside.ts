/** The file of a worker beside the module that starts it. */

/** `name` without its extension: TypeScript where the sources run, JavaScript in the compiled package. */
export function besideModule(moduleUrl: string, name: string): URL {
  return new URL(`./${name}${moduleUrl.endsWith(".ts") ? ".ts" : ".js"}`, moduleUrl);
}
