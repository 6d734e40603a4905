package masters

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestSettingsDifferUntilAllMastersHaveTheSame(t *testing.T) {
	client := fake.NewClientset()
	start := func(master, subdomain string) *Settings {
		s := &Settings{
			Client: client, Node: master, Values: map[string]string{"subdomain": subdomain},
			Differences: func(a, b map[string]string) []string {
				if maps.Equal(a, b) {
					return nil
				}
				return slices.Collect(maps.Keys(a))
			},
		}
		s.Notes(func(string) {})
		if !s.Differ() {
			t.Errorf("the settings of %s are equal before they are compared", master)
		}
		return s
	}
	first := start("first", "former")
	componenttest.Run(t, first.Run)
	eventually.True(t, "the only master has no differences", func() bool { return !first.Differ() })

	second := start("second", "changed")
	if text, err := second.compare(t.Context()); err != nil || text == "" {
		t.Errorf("the difference is described as %q, %v", text, err)
	}
	first = start("first", "changed")
	componenttest.Run(t, first.Run)
	eventually.True(t, "the masters have the same settings", func() bool { return !first.Differ() })
}
