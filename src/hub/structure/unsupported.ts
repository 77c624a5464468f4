/**
 * Parts of the specification that this hub does not support yet respond with 501 and a reason, never with an empty
 * success. They are registered after all other routes: a method and address that another resource has is left to it.
 */
import type { FastifyInstance } from "fastify";
import { notSupported } from "../http/problems.ts";
import { described } from "../http/route.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

const REASONS: Readonly<Record<string, readonly string[]>> = {
  "the specification names it without showing it": [
    "dashboards",
    "geozones",
    "odm",
    "tenants",
    "accounts",
    "impersonation",
  ],
};

export async function unsupportedRoutes(app: FastifyInstance): Promise<void> {
  const add = (methods: string[], url: string, reason: string) => {
    const method = methods.filter((one) => !app.hasRoute({ method: one, url }));
    if (method.length === 0) return;
    app.route({
      method,
      url,
      ...described({ access: "read", tag: "Not yet", status: 501, summary: "Not supported", description: reason }),
      handler: () => {
        throw notSupported(url.replace(/:(\w+)/g, "{$1}").replace(/\/\*$/, ""), reason);
      },
    });
  };
  for (const [reason, resources] of Object.entries(REASONS))
    for (const resource of resources) for (const url of [`/${resource}`, `/${resource}/*`]) add(METHODS, url, reason);
}
