// The dashboard's answers to HTTP: the page's files, and its data as JSON.
//
//   /                 the page; /NAME: its other files
//   /data/snapshot    what is (snapshot_json.h)
//   /data/timeline    what was (timeline.h)
//
// Everything is GET: nothing can be changed. The files hold nothing of the cluster and need no
// token. Data needs one that `access` accepts: 401 without, 403 if its user may not read, 429, and
// 503 if that could not be found out or there is no data; the body is one sentence for the user.
// Without `access` data is given to everybody who reaches the address; with local_hosts_only (421
// else) to requests for a host name of this machine: a page of the web could read it under a name
// that it lets point here (DNS rebinding).
//
// The page may load and run nothing but its own files (Content-Security-Policy), and no other page
// may frame it or read its answers.
//
// Thread-safety: the handlers may run on any thread; they may block.
#pragma once

#include <map>
#include <string>

#include "dashboard/access.h"
#include "dashboard/cached_text.h"
#include "server/http_server.h"

namespace fairlead::dashboard {

struct HandlerOptions {
  CachedText* snapshot = nullptr;
  CachedText* timeline = nullptr;
  Access* access = nullptr;  // null: no token is needed
  bool local_hosts_only = false;
};

// What the options point to outlives the handlers.
std::map<std::string, server::RequestHandler> Handlers(const HandlerOptions& options);

}  // namespace fairlead::dashboard
