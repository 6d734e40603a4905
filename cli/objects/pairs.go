package objects

import (
	"fmt"
	"io"
	"regexp"
)

// commaPair matches a second NAME=VALUE after a comma, which releases before OpenShift 3.2 split.
var commaPair = regexp.MustCompile(`=.*,[\p{L}\p{N}_.-]+=`)

// WarnOfCommas warns of values of a flag that look like several NAME=VALUE pairs. They are one
// pair.
func WarnOfCommas(out io.Writer, flag string, values []string) {
	for _, value := range values {
		if commaPair.MatchString(value) {
			fmt.Fprintf(out, "warning: %s no longer accepts comma-separated lists of values. %q will be treated as a single key-value pair.\n", flag, value)
		}
	}
}
