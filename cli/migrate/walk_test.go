package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

func TestProgressNamesKinds(t *testing.T) {
	var out strings.Builder
	reporting, silent := progress{out: &out}, progress{}
	for _, kind := range []string{"pods", "pods", "secrets"} {
		info := &resource.Info{Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: kind}}}
		reporting.visit(info)
		silent.visit(info)
	}
	if got, want := out.String(), "0 objects visited, next: pods\n2 objects visited, next: secrets\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMigrationIsNotLimitedToFiveRequestsPerSecond(t *testing.T) {
	slow := &rest.Config{Host: "https://master.example.com", QPS: 5, RateLimiter: flowcontrol.NewTokenBucketRateLimiter(5, 10)}
	if got := unlimited(slow); got.QPS >= 0 || got.RateLimiter != nil || got.Host != slow.Host || slow.QPS != 5 {
		t.Errorf("the limit is %v, %v", got.QPS, got.RateLimiter)
	}
}
