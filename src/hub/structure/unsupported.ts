/** What the specification names and this hub does not do yet is answered by 501 with a reason, never by an empty success. */
import type { FastifyInstance } from "fastify";
import type { HubContext } from "../context.ts";
import { notSupported } from "../http/problems.ts";

const REASONS: Readonly<Record<string, readonly string[]>> = {
  "files are taken by the gateway; storage comes with a later version": ["storage", "fileTrigger"],
  "it comes with a later version": ["alarms", "user", "account", "form"],
  "the specification names it without showing it": [
    "dashboards",
    "geozones",
    "dataLossDetection",
    "dataQuality",
    "tenants",
  ],
};

export async function unsupportedRoutes(app: FastifyInstance, { guard }: HubContext): Promise<void> {
  for (const [reason, resources] of Object.entries(REASONS)) {
    for (const resource of resources) {
      for (const url of [`/${resource}`, `/${resource}/*`]) {
        app.all(url, async (request) => {
          await guard.authenticate(request, ["datahub-api"]);
          throw notSupported(`/${resource}`, reason);
        });
      }
    }
  }
  app.post("/sources/:id/attributes/*", async (request) => {
    await guard.authenticate(request, ["datahub-api"]);
    throw notSupported("POST /sources/{id}/attributes", "time-sliced attributes come with a later version");
  });
}
