package csitest

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

var errKilled = errors.New("the test has killed this process")

// Killer simulates a process crash at a driver call or at a write to the API server. Until Revive
// is called, later calls and requests by the process fail without effect. A nil Killer never kills
// the process.
type Killer struct {
	// After kills the process immediately after the call has taken effect, instead of before the
	// call.
	After bool

	mu        sync.Mutex
	remaining int // number of calls before the kill; 0 means no kill
	dead      bool
	at        string
}

// Arm makes the Killer kill the process at the nth call from now.
func (k *Killer) Arm(nth int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remaining = nth
}

// Dead reports whether the process was killed.
func (k *Killer) Dead() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// Where returns the call at which the process was killed, or "".
func (k *Killer) Where() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

// Revive disarms the Killer. Requests and calls take effect again, as after a process restart.
func (k *Killer) Revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead, k.remaining = false, 0
}

// Config wraps a process's client configuration for the API server. The process is killed before or
// after one of its writes. None of its later requests is sent.
func (k *Killer) Config(config *rest.Config) *rest.Config {
	if k != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{k, next} })
	}
	return config
}

type transport struct {
	*Killer
	next http.RoundTripper
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		if t.Dead() {
			return nil, errKilled
		}
		return t.next.RoundTrip(r)
	}
	before, after := t.step(strings.ToLower(r.Method) + " " + r.URL.Path)
	if before != nil {
		return nil, before
	}
	response, err := t.next.RoundTrip(r)
	if err == nil && after != nil {
		_ = response.Body.Close()
		return nil, after
	}
	return response, err
}

// Plan returns a plan that kills the process at driver calls.
func (k *Killer) Plan() fake.Plan {
	return func(method string, _ int) fake.Fault {
		switch method {
		case "Probe", "GetPluginInfo", "GetPluginCapabilities", "ControllerGetCapabilities":
			return fake.Fault{}
		}
		before, after := k.step(method)
		if before != nil {
			return fake.Fault{Before: status.Error(codes.Unavailable, before.Error())}
		}
		if after != nil {
			return fake.Fault{After: status.Error(codes.Unavailable, after.Error())}
		}
		return fake.Fault{}
	}
}

// step counts a call and returns the errors to inject before and after the call.
func (k *Killer) step(operation string) (before, after error) {
	if k == nil {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return errKilled, nil
	}
	if k.remaining == 0 {
		return nil, nil
	}
	if k.remaining--; k.remaining > 0 {
		return nil, nil
	}
	k.dead, k.at = true, operation
	if k.After {
		return nil, errKilled
	}
	return errKilled, nil
}
