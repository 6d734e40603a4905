package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
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
