package node

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// anyone authenticates either all requests or none.
type anyone struct {
	server.AuthInterface
	authentic bool
}

func (a anyone) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{}, a.authentic, nil
}

func TestRequestsWaitUntilKubeletHasPods(t *testing.T) {
	synced, results := make(chan struct{}), make(chan bool)
	auth := &waitingAuth{AuthInterface: anyone{authentic: true}, synced: synced, timeout: time.Hour}
	go func() {
		_, ok, err := auth.AuthenticateRequest(request(t.Context()))
		results <- ok && err == nil
	}()
	select {
	case <-results:
		t.Fatal("the request does not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(synced)
	if !<-results {
		t.Error("the request is rejected")
	}
}

func TestWaitingRequestsTimeOut(t *testing.T) {
	stale, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		ctx       context.Context
		timeout   time.Duration
		authentic bool
	}{
		"a canceled request":      {stale, time.Hour, true},
		"a timeout":               {t.Context(), time.Nanosecond, true},
		"a client without a name": {t.Context(), time.Hour, false},
	} {
		auth := &waitingAuth{AuthInterface: anyone{authentic: tt.authentic}, synced: make(chan struct{}), timeout: tt.timeout}
		if _, ok, err := auth.AuthenticateRequest(request(tt.ctx)); ok != tt.authentic || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

func request(ctx context.Context) *http.Request { return (&http.Request{}).WithContext(ctx) }
