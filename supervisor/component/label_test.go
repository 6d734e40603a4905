package component

import (
	"context"
	"testing"
)

func TestGoroutinesInheritComponent(t *testing.T) {
	inside := make(chan string)
	err := withLabel(t.Context(), "kubelet", func(context.Context) error {
		go func() {
			go func() { inside <- Current() }()
		}()
		if got := <-inside; got != "kubelet" {
			t.Errorf("a goroutine of the component belongs to %q, want kubelet", got)
		}
		return context.Canceled
	})
	if err != context.Canceled {
		t.Errorf("got error %v, want the error of the component", err)
	}
	if got := Current(); got != "" {
		t.Errorf("a goroutine outside components belongs to %q", got)
	}
}
