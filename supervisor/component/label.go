package component

import (
	"context"
	"runtime/pprof"
	"sync"
	"unsafe"
)

// names maps the profiler labels of goroutines (unsafe.Pointer) to component names. Like the log,
// it is global to the process.
var names = sync.Map{}

// labels returns the profiler labels of the calling goroutine. The Go runtime keeps this function
// for other packages (https://go.dev/issue/67401).
//
//go:linkname labels runtime/pprof.runtime_getProfLabel
func labels() unsafe.Pointer

// withLabel runs a component with its name as a label on its goroutines. A goroutine inherits the
// labels of the goroutine that starts it, so profiles also show the component for goroutines that
// upstream code starts.
func withLabel(ctx context.Context, name string, run func(context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels("component", name), func(ctx context.Context) {
		names.Store(labels(), name)
		err = run(ctx)
	})
	return err
}

// Current returns the name of the calling goroutine's component, or "".
func Current() string {
	name, _ := names.Load(labels())
	text, _ := name.(string)
	return text
}
