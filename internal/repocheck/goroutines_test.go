package repocheck

import (
	"go/ast"
	"go/token"
)

// start identifies a function that starts a goroutine.
type start struct{ path, function string }

// detached contains the functions that start a goroutine and do not wait for it. The value
// describes how the goroutine ends, or which code waits for it.
var detached = map[start]string{
	{"apigroup/quota/quota.go", "hooks"}:              "ends with the API server, whose hooks have nothing to wait in",
	{"apigroup/image/recordcount.go", "start"}:        "ends with the API server, whose hooks have nothing to wait in",
	{"catalog/ansible/sweep.go", "startSweeping"}:     "ends with the API server, whose hooks have nothing to wait in",
	{"catalog/ansible/watch.go", "Watch"}:             "Stop waits for it",
	{"console/watch.go", "follow"}:                    "ends with the API server, whose hooks have nothing to wait in",
	{"oauth/feature.go", "start"}:                     "ends with the API server, whose hooks have nothing to wait in",
	{"builder/source/silence.go", "watch"}:            "stop ends it",
	{"builder/source/silence.go", "newSilenceReader"}: "ends with its reader or the process: nothing ends a read of standard input",
	{"cli/build/binary.go", "pipeFrom"}:               "ends with its reader",
	{"kube/volumeplugin/namecache.go", "start"}:       "ends at the deadline of the driver; callers wait for done",
	{"supervisor/server.go", "serve"}:                 "Run closes the server",
	{"cmd/slipway/command/up.go", "detach"}:           "ends with the process; callers wait for the channel",
	{"router/haproxy/orphans.go", "adopt"}:            "ends with the process that it watches",
	{"router/haproxy/reload.go", "start"}:             "Run waits for the result of the reload",
	{"storage/flexvolume/process.go", "startProcess"}: "ends with the driver; wait waits for done",
	{"storage/flexvolume/watch.go", "add"}:            "close waits for pumpDone",
}

// checkGoroutines finds functions that start a goroutine and do not wait for it.
func checkGoroutines(t *tree) (violations findings) {
	t.goFiles(func(f file) {
		if f.isTestCode() {
			return
		}
		for _, decl := range f.syntax.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			var started []*ast.GoStmt
			waits := false
			ast.Inspect(function.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					started = append(started, n)
					return false // waiting inside the goroutine does not wait for the goroutine
				case *ast.UnaryExpr:
					waits = waits || n.Op == token.ARROW && !isDone(n.X)
				case *ast.SelectorExpr:
					waits = waits || n.Sel.Name == "Wait"
				}
				return true
			})
			_, listed := detached[start{f.path, function.Name.Name}]
			for _, statement := range started {
				if !waits && !listed {
					violations.add(f.path, f.line(statement), "%s starts a goroutine and does not wait for it: wait, or give it to a Run that does", function.Name.Name)
				}
			}
		}
	})
	return violations
}

// isDone reports whether an expression is a context's Done channel. A receive from this channel is
// not a wait, because it does not prove that a goroutine has ended.
func isDone(channel ast.Expr) bool {
	call, ok := channel.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Done"
}
