// On the first look, before anything shows: the page is asked for again once the server can know the browser's zone.
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
