package adm

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOldObjectsArePruned(t *testing.T) {
	now := time.Date(2018, 10, 1, 12, 0, 0, 0, time.UTC)
	newObject := func(name, config string, age time.Duration, orphan, complete bool) prunable {
		return prunable{metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}, config, orphan, complete}
	}
	all := []prunable{
		newObject("web-1", "web", 5*time.Hour, false, true), newObject("web-2", "web", 4*time.Hour, false, false), newObject("web-3", "web", 3*time.Hour, false, true),
		newObject("web-4", "web", 2*time.Hour, false, true), newObject("web-5", "web", time.Minute, false, false),
		newObject("gone-1", "gone", 3*time.Hour, true, true), newObject("gone-2", "gone", time.Minute, true, true),
	}
	for name, tt := range map[string]struct {
		keep limits
		want []string
	}{
		"few":     {limits{complete: 1, failed: 1, younger: time.Hour}, []string{"web-1", "web-2", "web-3"}},
		"many":    {limits{complete: 5, failed: 5, younger: time.Hour}, nil},
		"young":   {limits{younger: 2*time.Hour + time.Minute}, []string{"web-1", "web-2", "web-3"}},
		"orphans": {limits{complete: 5, failed: 5, younger: time.Hour, orphans: true}, []string{"gone-1"}},
		"all":     {limits{orphans: true}, []string{"web-1", "web-2", "gone-1", "web-3", "web-4", "gone-2", "web-5"}},
	} {
		var got []string
		for _, old := range tt.keep.exceeding(slices.Clone(all), now) {
			got = append(got, old.Name)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(tt.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q are removed, want %q", name, got, want)
		}
	}
}
