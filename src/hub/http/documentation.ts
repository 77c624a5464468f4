/** `/openapi.json`, and the page to browse it at `/docs`, which loads nothing from other addresses. */
import swagger, { type StaticDocumentSpec } from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { HubContext } from "../context.ts";
import { DOCUMENTATION_PATH } from "./access.ts";
import { openApi } from "./openapi.ts";
import { described, type HubRoute, type RouteFacts } from "./route.ts";

const DOCUMENT: RouteFacts = {
  access: "open",
  tag: "Hub",
  summary: "This document",
  answer: z.looseObject({}),
};

/** Called after every other route: the document names the existing ones. */
export async function documentationRoutes(
  app: FastifyInstance,
  { options }: HubContext,
  routes: readonly HubRoute[],
): Promise<void> {
  let document = {};
  app.get("/openapi.json", described(DOCUMENT), async () => document);
  document = openApi(routes, { url: options.publicUrl?.replace(/\/$/, "") ?? "/" });
  await app.register(swagger, {
    mode: "static",
    specification: { document: document as StaticDocumentSpec["document"] },
  });
  await app.register(swaggerUi, {
    routePrefix: DOCUMENTATION_PATH,
    staticCSP: "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'",
    theme: { title: "Headgate hub" },
    uiConfig: { layout: "BaseLayout", docExpansion: "list", deepLinking: true, persistAuthorization: false },
  });
}
