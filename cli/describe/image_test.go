package describe

import (
	"slices"
	"testing"
)

func TestLatestPrecedesOtherTags(t *testing.T) {
	tags := []string{"5.16", "v2", "latest", "1.0"}
	slices.SortFunc(tags, latestFirst)
	if !slices.Equal(tags, []string{"latest", "1.0", "5.16", "v2"}) {
		t.Errorf("order %q", tags)
	}
}
