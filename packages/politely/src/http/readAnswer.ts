import { type HeaderReader, headerReader } from "./headers/answerHeaders.js";
import { vendorNames } from "./headers/vendors.js";

/** Reads the fields of the standards and of all vendors that are known. */
export const readAnswer: HeaderReader = headerReader(vendorNames);
