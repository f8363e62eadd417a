// The CDK app. Bundles the handler, then writes the template: where the `cdk` command wants it, or into dist. Needs no account and no network.
import { fileURLToPath } from "node:url";
import { App } from "aws-cdk-lib";
import { bundleHandler } from "./bundleHandler.js";
import { CollectorStack } from "./collectorStack.js";

const inDist = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));

const codeFolder = inDist("bundle");
await bundleHandler(codeFolder);
const app = new App({
  outdir: process.env.CDK_OUTDIR ?? inDist("cdk.out"),
  // A template that CloudFormation would refuse is refused here.
  context: { "@aws-cdk/core:validateAgainstDefaultRules": true },
});
new CollectorStack(app, "TdnetCollector", { codeFolder, description: "Collects the daily list of TDnet, politely." });
console.log(`The template is in ${app.synth().directory}.`);
