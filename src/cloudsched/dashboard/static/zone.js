// Before anything shows: tells the server the browser's zone, and asks for the page again if that was another one.
{
  const zone = `cloudsched-zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  const has = () => document.cookie.split("; ").includes(zone);
  const { pathname } = new URL("../..", document.currentScript.src);
  if (!has()) {
    document.cookie = `${zone}; path=${pathname}; SameSite=Strict; max-age=31536000`;
    if (has() && !zone.endsWith("=UTC")) {
      document.documentElement.hidden = true;
      location.reload();
    }
  }
}
