package set

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

func TestLargeWeightsShrinkTo200(t *testing.T) {
	all := []routev1.RouteTargetReference{backend("", "a", 20), backend("", "b", 80), backend("", "c", 0)}
	if err := adjust(all, share{service: "c", value: 50, percent: true}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int32{25, 200, 25} {
		if got := *all[i].Weight; got != want {
			t.Errorf("service %s has weight %d, want %d", all[i].Name, got, want)
		}
	}
}
