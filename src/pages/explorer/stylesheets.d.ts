/** The bundler takes stylesheets as modules. */
declare module "*.css";
