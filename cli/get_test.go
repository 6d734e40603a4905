package cli

import (
	"strings"
	"testing"
)

func TestTypesAreShownIfSeveralAreRequested(t *testing.T) {
	for args, want := range map[string]bool{
		"": false, "pods": false, "pods web": false, "pods web db": false, "svc/web": false, "svc/web svc/db": false,
		"svc,pods": true, "svc,pod web": true, "svc/web pod/web": true, "all": true, "all,secrets": true,
	} {
		if got := severalTypes(strings.Fields(args)); got != want {
			t.Errorf("oc get %s: %v", args, got)
		}
	}
}
