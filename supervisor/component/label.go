package component

import (
	"context"
	"runtime/pprof"
	"sync"
	"unsafe"
)

// names contains the names of components by the labels of their goroutines (unsafe.Pointer). Like
// the log, it belongs to the whole process.
var names = sync.Map{}

// labels returns the profiler's labels of the calling goroutine. The runtime keeps this function
// for other packages (https://go.dev/issue/67401).
//
//go:linkname labels runtime/pprof.runtime_getProfLabel
func labels() unsafe.Pointer

// withLabel runs a component with its name as label of its goroutines. A goroutine inherits the
// labels of the one that starts it, so that profiles show the component of upstream's goroutines,
// too.
func withLabel(ctx context.Context, name string, run func(context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels("component", name), func(ctx context.Context) {
		names.Store(labels(), name)
		err = run(ctx)
	})
	return err
}

// Current returns the name of the component whose goroutine calls it, or "".
func Current() string {
	name, _ := names.Load(labels())
	text, _ := name.(string)
	return text
}
