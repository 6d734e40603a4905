package objects

import (
	"strings"
	"testing"
)

func TestCommasBetweenPairsCauseWarning(t *testing.T) {
	for value, warns := range map[string]bool{
		"X=Y,Z=W": true, "PASS=x,y=z": true, "LEVELS=INFO,WARNING": false, "X=Y": false, "X=": false,
	} {
		var out strings.Builder
		WarnOfCommas(&out, "--env", []string{value})
		if got := strings.Contains(out.String(), "no longer accepts comma-separated list"); got != warns {
			t.Errorf("%s: %q", value, out.String())
		}
	}
}
