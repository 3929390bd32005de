/** URLs as they may be shown. */

/** A URL with `***` in place of its password. Also of a text that is no URL only because its password is not encoded. */
export function withoutPassword(url: string): string {
  return url.replace(/(\/\/[^/:@]*):[\s\S]*@/, "$1:***@").replace(/([?&]\w*password=)[^&#]*/gi, "$1***");
}
