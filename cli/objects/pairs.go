package objects

import (
	"fmt"
	"io"
	"regexp"
)

// commaPair matches values that were split into several NAME=VALUE pairs before OpenShift 3.2.
var commaPair = regexp.MustCompile(`=.*,[\p{L}\p{N}_.-]+=`)

// WarnOfCommas warns about flag values that look like several NAME=VALUE pairs, because each value
// is parsed as a single pair.
func WarnOfCommas(out io.Writer, flag string, values []string) {
	for _, value := range values {
		if commaPair.MatchString(value) {
			fmt.Fprintf(out, "warning: %s no longer accepts comma-separated lists of values. %q will be treated as a single key-value pair.\n", flag, value)
		}
	}
}
