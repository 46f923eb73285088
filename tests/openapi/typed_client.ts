// The knowledge of a generated client about the interface: a change names the version that it is based on, a drawing needs a lease,
// and refusals have a shape.
import type { operations, paths } from "./notes";

type Change = operations["writeNote"]["parameters"];
export const change: Change = { header: { "If-Match": '"1"' }, path: { id: "1" } };
// @ts-expect-error: a change without a version is refused.
export const blind: Change = { path: { id: "1" } };
export const removal: operations["removeNote"]["parameters"] = { header: { "If-Match": '"1"' }, path: { id: "1" } };
export const read: operations["readNote"]["parameters"] = { path: { id: "1" } };

type Drawn = operations["writeDrawing"]["parameters"];
export const drawn: Drawn = { header: { "If-None-Match": "*", "Lease-Id": "id" }, path: { id: "1" } };
// @ts-expect-error: nobody writes a drawing without its lease.
export const withoutLease: Drawn = { header: { "If-None-Match": "*" }, path: { id: "1" } };

type Leases = paths["/.leases/v2/drawings/{id}"];
export const acquire: Leases["post"]["parameters"] = { header: { "Lease-Duration": "30" }, path: { id: "1" } };

type Refused = operations["writeNote"]["responses"][412 | 428]["content"]["application/problem+json"];
export const code = (refused: Refused): string => refused.code;
type Tag = operations["readNote"]["responses"][200]["headers"]["ETag"];
export const tag: Tag = '"1"';
