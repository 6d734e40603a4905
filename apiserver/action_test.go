package apiserver

import (
	"context"
	"errors"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAboutChecksBody(t *testing.T) {
	errInvalid := errors.New("invalid")
	for name, tt := range map[string]struct {
		path     string
		body     runtime.Object
		validate func(context.Context, runtime.Object) error
		want     func(error) bool
	}{
		"body of the object":     {"front", &routev1.Route{}, nil, func(err error) bool { return err == nil }},
		"body of another object": {"back", &routev1.Route{}, nil, apierrors.IsBadRequest},
		"body of another kind":   {"front", &routev1.RouteList{}, nil, apierrors.IsBadRequest},
		"invalid body":           {"front", &routev1.Route{}, func(context.Context, runtime.Object) error { return errInvalid }, func(err error) bool { return errors.Is(err, errInvalid) }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Action[*routev1.Route]{Kind: routev1.GroupVersion.WithKind("Route")}.About(t.Context(), tt.path, tt.body, tt.validate,
				func(route *routev1.Route) string { return "front" })
			if !tt.want(err) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestDryRunIsRejected(t *testing.T) {
	for name, tt := range map[string]struct {
		options *metav1.CreateOptions
		want    bool
	}{
		"no options": {nil, false},
		"creation":   {&metav1.CreateOptions{}, false},
		"dry run":    {&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := apierrors.IsBadRequest(RejectDryRun(tt.options)); got != tt.want {
				t.Errorf("rejected: %t, want %t", got, tt.want)
			}
		})
	}
}
