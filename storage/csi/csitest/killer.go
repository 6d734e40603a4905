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

var errKilled = errors.New("the test has ended this process")

// Killer ends a process at one of its calls: from then on none of its requests and calls has any effect, until Revive.
// A nil Killer never does.
type Killer struct {
	// After ends the process just after the call has had its effect, instead of just before.
	After bool

	mu   sync.Mutex
	left int // calls until the end; 0 is never
	dead bool
	at   string
}

// Arm ends the process at the nth call from now on.
func (k *Killer) Arm(nth int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = nth
}

// Dead tells whether the process has ended.
func (k *Killer) Dead() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// Where names the call at which the process ended, or is empty.
func (k *Killer) Where() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

// Revive starts the process anew; it will not be ended again.
func (k *Killer) Revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead, k.left = false, 0
}

// Config connects a process to the API server. The process ends before or after one of its writes; once it has, none of its requests is sent.
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
	answer, err := t.next.RoundTrip(r)
	if err == nil && after != nil {
		_ = answer.Body.Close()
		return nil, after
	}
	return answer, err
}

// Plan ends the process at calls of a driver as well.
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

// step counts a call and says what becomes of it.
func (k *Killer) step(what string) (before, after error) {
	if k == nil {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return errKilled, nil
	}
	if k.left == 0 {
		return nil, nil
	}
	if k.left--; k.left > 0 {
		return nil, nil
	}
	k.dead, k.at = true, what
	if k.After {
		return nil, errKilled
	}
	return errKilled, nil
}
