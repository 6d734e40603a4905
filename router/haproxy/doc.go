// Package haproxy runs HAProxy with a router's configuration. It has three parts, each in its own
// files:
//
//   - Configuration: Writer converts a model.State to a Config: frame and tables (writer.go,
//     frame.go, tables.go, backend.go), or the output of a custom template (custom.go). The
//     templates frame.cfg.tmpl and backend.cfg.tmpl read the router's environment variables and
//     route annotations, with the functions in functions.go. This part starts no process.
//   - Process: process.go starts, watches and stops HAProxy processes, and orphans.go finds
//     processes whose router was killed. files.go writes HAProxy's files, and runtime.go sends
//     commands to its runtime interface.
//   - Engine: a state machine that makes HAProxy serve the newest Config. engine.go contains its
//     settings and the methods that the router calls. machine.go contains its states. next, a pure
//     function in machine.go, decides when an HAProxy process is started.
//
// The runtime interface supports changes to servers, tables and certificates (plan.go, served.go,
// servers.go, certificates.go), and spare backends serve new routes (spare.go). These changes take
// effect immediately. All other changes need a reload: the engine starts the next HAProxy process,
// which takes over the listening sockets when it is ready (reload.go). A process that never becomes
// ready never takes over.
//
//	                         Set
//	┌─────────┐ first Config ┌──────────┐ ready        ┌─────────┐
//	│ waiting ├─────────────▶│ starting ├─────────────▶│ serving │◀─┐ Set: commands are enough
//	└─────────┘              └────┬─────┘              └─┬─┬───┬─┘──┘
//	                           ▲  │ rejected, timeout    │ │   │ Set: commands are not enough,
//	                           │  ▼                      │ │   ▼ after ReloadInterval
//	                         ┌─┴───────┐  process ended  │ │ ┌───────────┐ ready: old process leaves
//	                         │ backoff │◀────────────────┘ └─┤ reloading ├──────▶ serving
//	                         └─────────┘                     └─────┬─────┘
//	                                                               └ rejected, timeout: old process
//	                                                                 keeps serving, retry after backoff
//
// During a reload, the old process still serves requests and receives commands. If HAProxy rejects
// a Config, rejected.go finds the routes that cause the rejection, and the router excludes them. If
// the router is killed and Outlive is set, HAProxy continues to serve requests until the next
// engine takes over.
package haproxy
