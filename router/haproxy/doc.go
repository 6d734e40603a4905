// Package haproxy runs HAProxy with the configuration of a router. It has three parts, each in its
// own files:
//
//   - Configuration: Writer converts a model.State to a Config: frame and tables (writer.go,
//     frame.go, tables.go, backend.go), or the output of a custom template (custom.go). The
//     templates frame.cfg.tmpl and backend.cfg.tmpl read the router's variables and the annotations
//     of routes, with the functions in functions.go. It starts no process.
//   - Process: process.go starts, watches and ends HAProxy, orphans.go finds one whose router was
//     killed, files.go writes its files, and runtime.go sends commands to its runtime interface.
//   - Engine: a state machine that makes HAProxy serve the newest Config. engine.go has its
//     settings and what the router calls, machine.go its states. next, a pure function in
//     machine.go, decides when a HAProxy starts.
//
// The runtime interface supports changes of servers, tables and certificates (plan.go, served.go,
// servers.go, certificates.go), and spare backends serve new routes (spare.go). Such changes apply
// immediately. Any other change needs a reload: the engine starts the next HAProxy, which takes
// over the listening sockets when it is ready (reload.go). A process that never becomes ready never
// takes over.
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
// While a HAProxy reloads, the old process still serves and still gets commands. If HAProxy rejects
// a Config, rejected.go finds the routes that cause it, and the router excludes them. If the router
// is killed and Outlive is set, HAProxy continues to serve until the next engine takes over from
// it.
package haproxy
