package kube

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/tenant"
)

func TestPacerErrorContainsRetryAfter(t *testing.T) {
	by := func(name string, mark tenant.Mark) context.Context {
		return request.WithUser(mark.With(t.Context()), &user.DefaultInfo{Name: name})
	}
	shop := tenant.Mark{Name: "project shop"}
	for name, c := range map[string]struct {
		ctx     context.Context
		err     error
		code    int32
		seconds int32
	}{
		"tenant":                    {by("alice", shop), refused("too many", 1500*time.Millisecond), http.StatusTooManyRequests, 2},
		"scheduler":                 {by("system:kube-scheduler", tenant.Mark{Name: shop.Name, NoWait: true}), refused("too many", time.Second), http.StatusTooManyRequests, 0},
		"request of the API server": {by(user.APIServerUser, shop), refused("too many", time.Second), http.StatusTooManyRequests, 0},
		"full":                      {by("alice", shop), full(), http.StatusInsufficientStorage, 0},
		"etcd's own limit":          {by("alice", shop), status.Error(codes.ResourceExhausted, "etcdserver: too many requests"), 0, 0},
		"other error":               {by("alice", shop), errors.New("timeout"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := response(c.ctx, c.err)
			if c.code == 0 {
				if !errors.Is(got, c.err) {
					t.Errorf("the error is %v", got)
				}
				return
			}
			described := apierrors.APIStatus(nil)
			if !errors.As(got, &described) || described.Status().Code != c.code || described.Status().Message == "" {
				t.Fatalf("the error is %#v", got)
			}
			var seconds int32
			if details := described.Status().Details; details != nil {
				seconds = details.RetryAfterSeconds
			}
			if seconds != c.seconds {
				t.Errorf("repeated after %d s, want %d", seconds, c.seconds)
			}
		})
	}
	if err := response(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
